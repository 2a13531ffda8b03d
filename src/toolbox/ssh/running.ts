// A command of an SSH session, with pipes or in a terminal.
import type { Output } from '../agent/agent.ts'

export type End = { code: number; signal: number | null }

export interface Running {
  /** The output of the command, until its end. Unread output waits in the sandbox. */
  outputs(): AsyncIterable<Output>
  /** How the command ended. Resolves after everything from `outputs` was read. */
  readonly end: Promise<End>
  /** Sends `data` to the command as input. `onGone` is called when the memory of `data` may be reused. */
  write(data: Buffer, onGone: () => void): void
  endInput(): void
  signal(signal: number): void
  resize(size: { cols: number; rows: number }): void
  /** Called when the caller has disconnected. Sends SIGHUP to the command. */
  hangUp(): void
}
