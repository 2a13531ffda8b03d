// Tells a caller that the kernel has killed for want of memory: a command that ends with 137 and no word is a riddle.
import type { ToolboxSandbox } from '../sandbox.ts'

type Sandbox = Pick<ToolboxSandbox, 'assignment' | 'memoryKills'>

/** The mark of an answer, the limit in words, and a line for the output of what has failed. */
export type OutOfMemory = { oom: true; limit: string; line: string }

const shortageOf = ({ assignment }: Sandbox): OutOfMemory => {
  const limit = `${assignment.memoryGiB} GiB`
  const line = `\n[out of memory: a process was killed at the limit of ${limit} of this sandbox]\n`
  return { oom: true, limit, line }
}

/** Asked before a command starts. The answer tells, when it has ended, whether the sandbox has run out of memory since. */
export const watchMemory = (sandbox: Sandbox) => {
  const { memoryKills } = sandbox
  const before = memoryKills?.count() ?? 0
  return (): OutOfMemory | undefined => {
    if ((memoryKills?.count() ?? 0) <= before) return undefined
    return shortageOf(sandbox)
  }
}

/**
 * Whether the sandbox ran out of memory during a command that has ended and that nobody watched. Within two seconds this may be
 * said of a command that ran beside the one that was killed.
 */
export const findPastShortage = (
  sandbox: Sandbox,
  { createdAt, endedAt }: { createdAt: Date; endedAt: Date | null },
): OutOfMemory | undefined => {
  if (endedAt === null || !sandbox.memoryKills?.between(createdAt.getTime(), endedAt.getTime())) return undefined
  return shortageOf(sandbox)
}

/** False for almost every sandbox, and known without asking its agent. */
export const hasRunShort = ({ memoryKills }: Sandbox): boolean => (memoryKills?.count() ?? 0) > 0
