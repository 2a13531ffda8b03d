// Reads from the kernel log how PID 1 of a sandbox ended. PID 1 has no parent on the host that could report this.
import { CommandFailed, runCommand } from '#src/kit/run-command.ts'
import type { Init } from '#src/runner/machine/processes.ts'

type KernelWord = 'out of memory' | 'crashed'

/** Clock ticks per second in `/proc/{pid}/stat`: 100 on every Linux on which Alcove runs (proc(5), USER_HZ). */
const ticksPerSecond = 100

/**
 * Returns how the process ended, if the log shows it. Lines have the form `[12345.678901] text`, the oldest first. A process can
 * choose its name, but a name has at most 15 characters, too few to forge a line.
 */
export const findKernelWord = (log: string, { pid, startTime }: Init): KernelWord | undefined => {
  const killed = new RegExp(`(?:^|: )Killed process ${pid} \\(`)
  const crashed = new RegExp(
    `^(?:traps: )?[^\\[\\]]{0,16}\\[${pid}\\]:? (?:segfault at|general protection fault|bad frame in) `,
  )
  for (const line of log.split('\n').reverse()) {
    const [, seconds, text = ''] = /^\[\s*(\d+\.\d+)\] (.*)$/.exec(line) ?? []
    if (seconds === undefined) continue
    // Lines from before the start of the process are about an earlier process with the same id.
    if (Number(seconds) * ticksPerSecond < Number(startTime)) return undefined
    if (killed.test(text)) return 'out of memory'
    if (crashed.test(text)) return 'crashed'
  }
  return undefined
}

/** Finds in the kernel log why a process ended. Undefined if the log does not say so or cannot be read. */
export const kernelWordOf = async (init: Init): Promise<KernelWord | undefined> => {
  try {
    return findKernelWord(await runCommand(['dmesg'], { timeoutMs: 5_000 }), init)
  } catch (error) {
    if (error instanceof CommandFailed) return undefined
    throw error
  }
}
