// Reports the end of a shell: by a message to clients that understand it, and by the close code of the socket.

import type { OutOfMemory } from '#src/toolbox/running/out-of-memory.ts'
import type { Exit } from '../agent/agent.ts'

const words: Record<number, string> = { 130: 'Ctrl+C', 137: 'SIGKILL', 143: 'SIGTERM' }

/** The reason of the exit in words; undefined for a clean exit. */
const exitReasonOf = (exitCode: number): string | undefined => {
  if (exitCode === 0) return undefined
  return words[exitCode] ?? (exitCode > 128 ? `signal ${exitCode - 128}` : 'non-zero exit')
}

/**
 * Describes an exit for clients, in the message and in the close reason. Clients may compare the JSON text, so keep the order of
 * the fields.
 */
export const tellExit = ({ exitCode }: Exit, shortage?: OutOfMemory) => {
  const exitReason = shortage === undefined ? exitReasonOf(exitCode) : `out of memory: the limit is ${shortage.limit}`
  const told = {
    exitCode,
    ...(exitReason === undefined ? {} : { exitReason }),
    ...(shortage === undefined ? {} : { oom: shortage.oom }),
  }
  return {
    message: JSON.stringify({ type: 'control', status: 'exited', ...told }),
    closeCode: exitCode === 0 ? 1000 : 1011,
    closeReason: JSON.stringify(told),
  }
}
