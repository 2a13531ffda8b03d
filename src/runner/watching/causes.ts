// Tells users why a sandbox ended by itself, or why a process in it was killed. The facts come from the kernel.

import type { Evidence } from '#src/runner/kernel-memory/watch.ts'
import type { Run } from '#src/runner/machine/journal.ts'
import type { Machine } from '#src/runner/machine/machine.ts'
import type { Cause } from '#src/wire/runner-link.ts'
import { kernelWordOf } from './kernel-log.ts'

const limit = (memoryGiB: number) => `(limit ${memoryGiB} GiB)`

/**
 * Finds out why a sandbox ended. An unknown cause is outside the sandbox, because the sandbox's programs cannot end PID 1. The
 * kernel drops their signals. The system call filter stops them from giving PID 1 a CPU time limit, at which the kernel would kill
 * it.
 */
export const causeOfEnd = async (machine: Machine, memoryGiB: number, run: Run | undefined): Promise<Cause> => {
  if (run === undefined || run.bootId !== machine.bootId) return { detail: 'The machine was restarted.' }
  const { pid, startTime } = run
  if (pid === undefined || startTime === undefined) return { detail: 'The sandbox ended before it had started.' }
  switch (await kernelWordOf({ pid, startTime })) {
    case 'out of memory':
      return {
        oomKilled: true,
        signal: 'SIGKILL',
        detail: `It ran out of memory ${limit(memoryGiB)} and was killed.`,
      }
    case 'crashed':
      return { signal: 'SIGSEGV', detail: 'Its first process, which is the agent of Alcove, crashed.' }
    default:
      return { detail: 'Its first process was ended from outside the sandbox.' }
  }
}

const tooMuch: Record<Evidence, string> = {
  'netlink sockets': 'Its netlink sockets held more than 64 MiB of the host’s memory',
  'unaccepted connections': 'Connections that it did not accept held more than 64 MiB of the host’s memory',
  'unsent datagrams': 'Datagrams that it did not send held more than 64 MiB of the host’s memory',
  growth: 'It filled the kernel’s memory with objects that no limit counts',
}

/** Returns the cause of a sandbox that filled kernel memory and was therefore ended by the runner (kernel-memory/watch.ts). */
export const causeOfTooMuch = (evidence: Evidence): Cause => ({
  signal: 'SIGKILL',
  detail: `${tooMuch[evidence]}, so it was ended.`,
})

/** Returns the cause to report if processes were killed because memory ran out, while the sandbox keeps running. */
export const causeOfKills = (kills: number, memoryGiB: number): Cause => ({
  oomKilled: true,
  signal: 'SIGKILL',
  detail:
    kills === 1
      ? `It ran out of memory ${limit(memoryGiB)}, and a process was killed for it.`
      : `It ran out of memory ${limit(memoryGiB)}, and ${kills} processes were killed for it.`,
})

/** Returns the cause to report if a sandbox that keeps running has reached its limit of processes. */
export const causeOfRefusals = (most: number): Cause => ({
  detail: `It has as many processes and threads as it may (limit ${most}), and could not start another.`,
})
