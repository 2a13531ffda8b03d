// Runs the image's own git inside the sandbox, as the sandbox's user, never through a shell. Git never prompts, and its messages
// are English, so that failures.ts can parse them.
import { constants } from 'node:os'
import { Problem } from '#src/problems.ts'
import type { Deadline } from '#src/toolbox/running/deadline.ts'
import { BoundedOutput } from '#src/toolbox/running/output.ts'
import { runToEnd } from '#src/toolbox/running/run.ts'
import { callersFault } from '#src/toolbox/running/start-failure.ts'
import { type RunningCommand, StartFailed } from '../agent/agent.ts'
import { environmentOf } from '../agent/environment.ts'
import { pathFrom } from '../agent/work-directory.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import { problemOf } from './failures.ts'

const answerBytes = 16 * 1024 * 1024
const complaintBytes = 64 * 1024

/**
 * Maximum number of records in git's output of up to 16 MiB. Real output has far fewer. A hostile program in place of git could
 * keep the gate busy with empty records.
 */
const mostRecords = 250_000

/** Time in ms that git gets after SIGTERM to remove its lock files and an unfinished clone. */
const graceMs = 5_000

export type GitOptions = {
  /**
   * Settings (`name=value`) for this call, which override all configuration files. All processes in the sandbox can see these
   * settings.
   */
  settings?: readonly string[]
  env?: Record<string, string>
  stdin?: string
}
type GitAnswer = { exitCode: number; stdout: Buffer; stderr: string }

export type Git = {
  /** Runs git. If git fails, throws the matching Problem. */
  run: (args: readonly string[], options?: GitOptions) => Promise<GitAnswer>
  /** Runs git and returns its result even if git fails, for callers that check the exit code. */
  ask: (args: readonly string[], options?: GitOptions) => Promise<GitAnswer>
}

const quietly = {
  LC_ALL: 'C',
  GIT_TERMINAL_PROMPT: '0',
  // Empty: git starts no program that asks for a password. If this were unset, git would look for such a program in other settings.
  GIT_ASKPASS: '',
  SSH_ASKPASS: '',
  GIT_PAGER: 'cat',
  GIT_EDITOR: ':',
  GIT_SEQUENCE_EDITOR: ':',
  GIT_MERGE_AUTOEDIT: 'no',
  // Removes passwords from git's trace, if the sandbox enables tracing.
  GIT_TRACE_REDACT: '1',
}

const always = ['protocol.ext.allow=never', 'color.ui=false', 'core.quotePath=false']

/**
 * Sends SIGTERM to git, so that git can clean up. If git still runs after the grace period, kills git and closes the connection to
 * the agent.
 */
const endInOrder = (command: RunningCommand) => {
  command.kill(constants.signals.SIGTERM)
  const timer = setTimeout(() => {
    command.kill(constants.signals.SIGKILL)
    command.close()
  }, graceMs)
  command.exit.catch(() => undefined).finally(() => clearTimeout(timer))
}

const asProblem = (failure: StartFailed, spec: Parameters<typeof callersFault>[1]): Problem => {
  const cwd = (spec.cwd ?? '').slice(0, 1024)
  if (failure.stage === 'cwd' && (failure.errno === 'ENOENT' || failure.errno === 'ENOTDIR')) {
    return new Problem('git_repo_not_found', `directory not found: ${cwd}. There is no such directory.`, {
      cause: failure,
    })
  }
  if (failure.stage === 'cwd' && (failure.errno === 'EACCES' || failure.errno === 'EPERM')) {
    const sentence = `permission denied: ${cwd}. The sandbox user may not enter it.`
    return new Problem('file_access_denied', sentence, { cause: failure })
  }
  const fault = callersFault(failure, spec)
  return fault ?? new Problem('unprocessable', 'This sandbox has no git, or git cannot be started.', { cause: failure })
}

/** Runs git in one directory with one call's deadline. Default directory: where the sandbox's processes start. */
export const gitIn = (sandbox: ToolboxSandbox, deadline: Deadline, directory?: string): Git => {
  const ask: Git['ask'] = async (args, { settings = [], env = {}, stdin } = {}) => {
    using stdout = new BoundedOutput(sandbox.assignment.organizationId, answerBytes)
    using stderr = new BoundedOutput(sandbox.assignment.organizationId, complaintBytes)
    const spec = {
      argv: ['git', '--no-pager', ...[...always, ...settings].flatMap((setting) => ['-c', setting]), ...args],
      env: environmentOf(sandbox, { ...quietly, ...env }),
      ...(directory === undefined ? {} : { cwd: pathFrom(sandbox.workDirectory, directory) }),
      user: sandbox.assignment.user,
      ...(stdin === undefined ? {} : { stdin: Buffer.from(stdin) }),
      mergeOutput: false,
    }
    const take = (data: Buffer, stream: 'stdout' | 'stderr') => {
      // Ignore output after the deadline, because no caller waits for it.
      if (!deadline.signal.aborted) (stream === 'stdout' ? stdout : stderr).add(data)
    }
    const { exitCode } = await runToEnd(sandbox.agent, spec, deadline, take, endInOrder).catch((error) => {
      throw error instanceof StartFailed ? asProblem(error, spec) : error
    })
    if (stdout.droppedBytes > 0) throw new Problem('unprocessable', 'The answer of git is too long.')
    return { exitCode, stdout: stdout.bytes(), stderr: stderr.text() }
  }
  return {
    ask,
    run: async (args, options) => {
      const answer = await ask(args, options)
      if (answer.exitCode !== 0) throw problemOf(answer)
      return answer
    },
  }
}

/** Splits git's output at each `end`. The sandbox provides git, so the output may be anything. */
export const recordsOf = (stdout: Buffer, end: '\0' | '\n', encoding: BufferEncoding = 'utf8'): string[] => {
  const records = stdout.toString(encoding).split(end, mostRecords + 1)
  if (records.length > mostRecords) throw new Problem('unprocessable', 'The answer of git is too long.')
  return records
}

/**
 * Passes file names to git through standard input, so that no list is too long. Git never takes a name for an option or a pattern.
 */
export const fileList = (files: readonly string[]) => ({
  args: ['--pathspec-from-file=-', '--pathspec-file-nul'],
  options: { stdin: files.join('\0'), env: { GIT_LITERAL_PATHSPECS: '1' } },
})
