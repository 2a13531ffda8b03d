// Runs a command in a sandbox as if it ran on this machine: with this program's input, outputs and signals.
import type { Api } from '../api.ts'
import { Interrupted, type Interruption } from '../interruption.ts'
import type { Sandbox } from '../sandboxes/sandbox.ts'
import { type CommandParts, runCommand } from './remote-command.ts'

/** How long an interrupted program waits for the end of the command, in ms. A second signal ends the wait. */
const graceMs = 3000

/**
 * Returns the exit code of the command. If a signal interrupts this program, passes it on to the command. Then waits at most
 * `graceMs` for the command's end, and throws `Interrupted`.
 */
export const runForwarding = async (
  { api, interruption }: { api: Api; interruption: Interruption },
  sandbox: Sandbox,
  { argv, env }: Pick<CommandParts, 'argv' | 'env'>,
): Promise<number> => {
  const hangUp = new AbortController()
  const end = () => hangUp.abort(new Interrupted(interruption.exitCode ?? 1))
  let send: ((signal: string) => void) | undefined
  let timer: NodeJS.Timeout | undefined
  interruption.onSignal = (name) => {
    if (send === undefined || timer !== undefined) return end()
    send(name.slice('SIG'.length))
    timer = setTimeout(end, graceMs)
  }
  try {
    const code = await runCommand(api, sandbox, {
      argv,
      ...(env === undefined ? {} : { env }),
      input: process.stdin,
      stdout: process.stdout,
      stderr: process.stderr,
      signal: hangUp.signal,
      onStart: (signal) => {
        send = signal
      },
    })
    if (interruption.exitCode !== undefined) throw new Interrupted(interruption.exitCode)
    return code
  } finally {
    clearTimeout(timer)
    interruption.onSignal = () => {}
  }
}
