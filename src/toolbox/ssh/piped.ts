// Runs a command with three pipes instead of a terminal, so that stdout and stderr stay separate, and no byte is changed.
import { constants } from 'node:os'
import type { RunningCommand } from '../agent/agent.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import type { End, Running } from './running.ts'

/** Maximum time that a command may continue after its caller has disconnected, in ms. */
const graceMs = 5000

type Spec = { argv: string[]; env: Record<string, string>; user: string }

class Piped implements Running {
  readonly #command: RunningCommand
  readonly end: Promise<End>

  constructor(command: RunningCommand) {
    this.#command = command
    this.end = command.exit.then(({ exitCode, signal }) => ({ code: exitCode, signal }))
    this.end.catch(() => undefined)
  }

  outputs() {
    return this.#command
  }

  write(data: Buffer, onGone: () => void): void {
    this.#command.write(data, onGone)
  }

  endInput(): void {
    this.#command.endInput()
  }

  signal(signal: number): void {
    this.#command.kill(signal)
  }

  resize(): void {}

  /**
   * Sends SIGHUP, and after `graceMs` SIGKILL, to the process group. If the command ends before the SIGKILL, background processes
   * keep running, such as an editor's server.
   */
  hangUp(): void {
    this.#command.endInput()
    this.#command.kill(constants.signals.SIGHUP)
    const timer = setTimeout(() => this.#command.close(), graceMs).unref()
    this.end.catch(() => undefined).finally(() => clearTimeout(timer))
  }
}

export const startPiped = async ({ agent }: ToolboxSandbox, spec: Spec): Promise<Running> =>
  new Piped(await agent.exec({ ...spec, keepInput: true, mergeOutput: false }))
