// Tells a caller that the kernel has killed for want of memory: a command that ends with 137 and no word is a riddle.
import type { ToolboxSandbox } from '../sandbox.ts'

type Sandbox = Pick<ToolboxSandbox, 'assignment' | 'outOfMemoryKills'>

/** What an answer says of it, the limit in words, and a line for its output. */
export type OutOfMemory = { oom: true; limit: string; line: string }

/** Asked before a command starts. The answer tells, when it has failed, whether the sandbox has run out of memory since. */
export const watchMemory = ({ assignment, outOfMemoryKills }: Sandbox) => {
  const before = outOfMemoryKills?.() ?? 0
  return (): OutOfMemory | undefined => {
    if ((outOfMemoryKills?.() ?? 0) <= before) return undefined
    const limit = `${assignment.memoryGiB} GiB`
    const line = `\n[out of memory: a process was killed at the limit of ${limit} of this sandbox]\n`
    return { oom: true, limit, line }
  }
}
