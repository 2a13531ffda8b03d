// Turns a request of an SSH session into a program of the sandbox.
import { Problem } from '#src/problems.ts'
import { checkEnvironment } from '#src/toolbox/running/environment.ts'
import type { CommandStart } from '#src/wire/ssh.ts'
import { isRefused, StartFailed } from '../agent/agent.ts'
import { environmentOf } from '../agent/environment.ts'
import { asNotStarted } from '../refusals.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import { startPiped } from './piped.ts'
import type { Running } from './running.ts'
import { startTerminal } from './terminal.ts'

/** Without LANG, shells treat typed text as ASCII. */
const base = { LANG: 'C.UTF-8' }

/**
 * Returns a script that runs the user's shell, or bash or sh if the user's shell is unusable. `how`: the arguments of the shell.
 */
const asShell = (how: string) => `case "$SHELL" in
''|*/nologin|*/false) s= ;;
*) s=$SHELL ;;
esac
[ -x "$s" ] || s=$(command -v bash || echo /bin/sh)
SHELL=$s
export SHELL
exec "$s" ${how}`

/** Paths at which distributions install OpenSSH's SFTP server. */
const sftpServers = [
  '/usr/lib/openssh/sftp-server',
  '/usr/libexec/openssh/sftp-server',
  '/usr/libexec/sftp-server',
  '/usr/lib/ssh/sftp-server',
  '/usr/lib/sftp-server',
]

const missing = {
  shell: 'This sandbox has no shell.',
  exec: 'This sandbox has no shell to run the command.',
  sftp: 'This sandbox has no sftp-server. Install one in its image: openssh-sftp-server on Debian and Alpine.',
}

/** Returns the command lines to try, in this order, until the program of one exists. */
const programsFor = (run: CommandStart['run']): string[][] => {
  switch (run.kind) {
    case 'sftp':
      return sftpServers.map((path) => [path])
    case 'exec':
      return [['/bin/sh', '-c', asShell('-c "$1"'), 'sh', run.command]]
    case 'shell':
      return [['/bin/sh', '-c', asShell('-l')]]
  }
}

const isMissing = (error: unknown) =>
  error instanceof StartFailed && error.stage === 'exec' && ['ENOENT', 'EACCES', 'ENOTDIR'].includes(error.errno)

/** Starts the program that an SSH session requests. Throws a Problem with the reason if no program can be started. */
export const startRequested = async (
  sandbox: ToolboxSandbox,
  { run, env, terminal }: CommandStart,
): Promise<Running> => {
  checkEnvironment(env)
  const { user } = sandbox.assignment
  let failure: unknown
  for (const argv of programsFor(run)) {
    const given = terminal === undefined ? env : { ...env, TERM: terminal.term }
    const spec = { argv, env: { ...base, ...environmentOf(sandbox, given) }, user }
    try {
      return terminal === undefined ? await startPiped(sandbox, spec) : await startTerminal(sandbox, spec, terminal)
    } catch (error) {
      failure = error
      if (!isMissing(error)) break
    }
  }
  if (isRefused(failure, 'ENOSPC')) throw new Problem('unprocessable', 'The disk of this sandbox is full.')
  throw asNotStarted(failure, '', user, missing[run.kind])
}
