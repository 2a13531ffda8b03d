// Tells a caller that the kernel has killed for want of memory: a command that ends with 137 and no word is a riddle.
import type { MemoryKillsHere } from '#src/wire/gate-link.ts'
import type { ToolboxSandbox } from '../sandbox.ts'

type Sandbox = Pick<ToolboxSandbox, 'assignment' | 'memoryKills'>

/** The mark of an answer, the limit in words, and a line for the output of what has failed. */
export type OutOfMemory = { oom: true; limit: string; line: string }

const shortageOf = ({ assignment }: Sandbox): OutOfMemory => {
  const limit = `${assignment.memoryGiB} GiB`
  const line = `\n[out of memory: a process was killed at the limit of ${limit} of this sandbox]\n`
  return { oom: true, limit, line }
}

/** Whether somebody may have been killed then; milliseconds since 1970. */
export const wasBetween = (spans: MemoryKillsHere['spans'], from: number, until: number): boolean =>
  spans.some((span) => span.after <= until && span.until >= from)

/** A sandbox whose runner does not answer now has no kills that anybody knows of. */
const killsOf = async ({ memoryKills }: Sandbox): Promise<MemoryKillsHere> =>
  (await memoryKills?.().catch(() => undefined)) ?? { count: 0, spans: [] }

/** Nobody fills a memory in so short a time; asking would take a part of it. */
const fastMs = 20

/**
 * Asked before a command starts. The answer tells, when it has ended, whether the sandbox has run out of memory since. Within two
 * seconds after a kill that nobody has looked for, this may be said of a command that began after it.
 */
export const watchMemory = (sandbox: Sandbox) => {
  const from = Date.now()
  return async (exitCode?: number): Promise<OutOfMemory | undefined> => {
    const until = Date.now()
    if (exitCode === 0 && until - from < fastMs) return undefined
    const { spans } = await killsOf(sandbox)
    // The look that has found the kill comes a moment later.
    return wasBetween(spans, from, Date.now()) ? shortageOf(sandbox) : undefined
  }
}

type Ran = { createdAt: Date; endedAt: Date | null }

/**
 * Finds whether the sandbox ran out of memory during commands that have ended and that nobody watched. Within two seconds this may
 * be said of a command that ran beside the one that was killed.
 */
export const lookBack = async (
  sandbox: Sandbox,
  any: readonly Ran[],
): Promise<(ran: Ran) => OutOfMemory | undefined> => {
  const { spans } = any.some(({ endedAt }) => endedAt !== null) ? await killsOf(sandbox) : { spans: [] }
  return ({ createdAt, endedAt }) =>
    endedAt !== null && wasBetween(spans, createdAt.getTime(), endedAt.getTime()) ? shortageOf(sandbox) : undefined
}

/** False for almost every sandbox, and known without asking its agent. */
export const hasRunShort = async (sandbox: Sandbox): Promise<boolean> => (await killsOf(sandbox)).count > 0
