// A command of an SSH session, with pipes or in a terminal.
import type { Output } from '../agent/agent.ts'

export type End = { code: number; signal: number | null }

export interface Running {
  /** The output, and then its end. Unread output waits in the sandbox. */
  outputs(): AsyncIterable<Output>
  /** Resolves after the output has been read. */
  readonly end: Promise<End>
  /** Adds input. `onGone` is called when its memory is no longer needed. */
  write(data: Buffer, onGone: () => void): void
  endInput(): void
  signal(signal: number): void
  resize(size: { cols: number; rows: number }): void
  /** The caller has left: the command gets a SIGHUP. */
  hangUp(): void
}
