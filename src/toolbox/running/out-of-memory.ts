// Tells a caller that the kernel killed a process for lack of memory: exit code 137 alone does not explain it.
import type { MemoryKillsHere } from '#src/wire/gate-link.ts'
import type { ToolboxSandbox } from '../sandbox.ts'

type Sandbox = Pick<ToolboxSandbox, 'assignment' | 'memoryKills'>

/** What a caller is told. `oom`: field of the answer. `limit`: in words. `line`: for the output of a failed command. */
export type OutOfMemory = { oom: true; limit: string; line: string }

const shortageOf = ({ assignment }: Sandbox): OutOfMemory => {
  const limit = `${assignment.memoryGiB} GiB`
  const line = `\n[out of memory: a process was killed at the limit of ${limit} of this sandbox]\n`
  return { oom: true, limit, line }
}

/** Whether the kernel may have killed a process for lack of memory between `from` and `until` (ms since 1970). */
export const wasBetween = (spans: MemoryKillsHere['spans'], from: number, until: number): boolean =>
  spans.some((span) => span.after <= until && span.until >= from)

/**
 * Asks the runner how many processes the kernel killed for lack of memory, and at which times. Without an answer, returns no kills.
 */
const killsOf = async ({ memoryKills }: Sandbox): Promise<MemoryKillsHere> =>
  (await memoryKills?.().catch(() => undefined)) ?? { count: 0, spans: [] }

/** A successful command below this time, in ms, is not checked: it cannot have filled the memory, and the check takes time. */
const fastMs = 20

/**
 * Called before a command. The returned function tells whether the sandbox has run out of memory since. The time of a kill may be
 * wrong by 2 s, so the function may also report a kill just before the command.
 */
export const watchMemory = (sandbox: Sandbox) => {
  const from = Date.now()
  return async (exitCode?: number): Promise<OutOfMemory | undefined> => {
    const until = Date.now()
    if (exitCode === 0 && until - from < fastMs) return undefined
    const { spans } = await killsOf(sandbox)
    // Include kills after the command's end, because the runner may record a kill a moment late.
    return wasBetween(spans, from, Date.now()) ? shortageOf(sandbox) : undefined
  }
}

type Ran = { createdAt: Date; endedAt: Date | null }

/**
 * Returns a function that tells whether the sandbox ran out of memory during a command. Use it for a command without `watchMemory`.
 * The time of a kill may be wrong by 2 s. So a kill just before or after the command may count, too.
 */
export const lookBack = async (
  sandbox: Sandbox,
  any: readonly Ran[],
): Promise<(ran: Ran) => OutOfMemory | undefined> => {
  const { spans } = any.some(({ endedAt }) => endedAt !== null) ? await killsOf(sandbox) : { spans: [] }
  return ({ createdAt, endedAt }) =>
    endedAt !== null && wasBetween(spans, createdAt.getTime(), endedAt.getTime()) ? shortageOf(sandbox) : undefined
}

/** Whether the sandbox ever ran out of memory. Asks only the runner, not the agent. */
export const hasRunShort = async (sandbox: Sandbox): Promise<boolean> => (await killsOf(sandbox)).count > 0
