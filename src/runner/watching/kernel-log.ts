// Reads from the kernel log how a sandbox's first process ended. Normally the parent of a process learns that, but this process
// has no parent on the host that could report it.
import { CommandFailed, runCommand } from '#src/kit/run-command.ts'
import type { Init } from '#src/runner/machine/processes.ts'

type KernelWord = 'out of memory' | 'crashed'

/** Clock ticks of `/proc/{pid}/stat` in a second; the same on every Linux on which Alcove runs (proc(5), USER_HZ). */
const ticksPerSecond = 100

/**
 * Searches lines of the form `[12345.678901] text`, ordered oldest first. A process chooses its own name, but 15 characters are
 * too few to forge a line about another process.
 */
export const findKernelWord = (log: string, { pid, startTime }: Init): KernelWord | undefined => {
  const killed = new RegExp(`(?:^|: )Killed process ${pid} \\(`)
  const crashed = new RegExp(
    `^(?:traps: )?[^\\[\\]]{0,16}\\[${pid}\\]:? (?:segfault at|general protection fault|bad frame in) `,
  )
  for (const line of log.split('\n').reverse()) {
    const [, seconds, text = ''] = /^\[\s*(\d+\.\d+)\] (.*)$/.exec(line) ?? []
    if (seconds === undefined) continue
    // Earlier lines are about another process that had the same number.
    if (Number(seconds) * ticksPerSecond < Number(startTime)) return undefined
    if (killed.test(text)) return 'out of memory'
    if (crashed.test(text)) return 'crashed'
  }
  return undefined
}

/** Searches the kernel log for the reason why a process ended. Undefined if there is none, or if the log cannot be read. */
export const kernelWordOf = async (init: Init): Promise<KernelWord | undefined> => {
  try {
    return findKernelWord(await runCommand(['dmesg'], { timeoutMs: 5_000 }), init)
  } catch (error) {
    if (error instanceof CommandFailed) return undefined
    throw error
  }
}
