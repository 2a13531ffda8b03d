// For tests: the assignment of a sandbox called `box-1`, for tests that need only a user and an environment.
import { userInfo } from 'node:os'
import { dirname } from 'node:path'
import type { Assignment } from '#src/wire/runner-link.ts'

/** A PATH with this Node and the programs of the machine. */
export const searchPath = `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`

export const assignmentWith = (changes: Partial<Assignment>): Assignment => ({
  sandboxId: 'box-1',
  organizationId: 'org-1',
  regionId: 'region-1',
  name: 'box',
  generation: 1,
  target: 'started',
  signal: 'SIGTERM',
  image: 'default',
  snapshot: 'snapshot-1',
  user: userInfo().username,
  env: { PATH: searchPath },
  language: 'python',
  cpu: 1,
  memoryGiB: 1,
  diskGiB: 1,
  network: { blockAll: false, allowList: null },
  ...changes,
})
