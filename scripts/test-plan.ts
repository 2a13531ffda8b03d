// Decides which test files run at the same time. A plan is a list of phases; the files of a phase run in lanes (workers).
//   1 all files that are not in phase 2: more lanes than processors, because many tests wait
//   2 files that measure the host's memory or check a time, one after the other
import { readFileSync } from 'node:fs'
import { batchesOf, eachAlone } from './test-batches.ts'
import type { Lanes, Queue } from './test-lanes.ts'
import { needsOf, reachableFrom } from './test-needs.ts'

const sandboxTests = 'test/sandboxes/'

/** Whether a test file uses a real server. */
export const needsServer = (file: string): boolean => file.startsWith(sandboxTests)

const includes = (file: string, pattern: RegExp) => pattern.test(readFileSync(file, 'utf8'))

/** Whether a test file uses the server that several files share. Other files that need a server start their own. */
export const sharesServer = (file: string): boolean => needsServer(file) && includes(file, /\bplatform\(\)/)

const named = (...names: string[]) => {
  const files = names.map((name) => `${sandboxTests}${name}.test.ts`)
  return (file: string) => files.includes(file)
}
const measuresHostMemory = named('kernel-memory')
const checksTime = named('busy')

/** Whether a test file measures a program of the server. Two such files at the same time would spoil each other's results. */
const measuresServer = (file: string) => includes(file, /\bmemoryOf\(/)

/**
 * Whether the server of a test file has the real default image. On a new machine, such a server waits until this image is made. So
 * test files with the small image run first.
 */
const wantsRealImage = (file: string) =>
  ![...reachableFrom(file)].some(
    (module) => /^(?:test|src)\/.*\.ts$/.test(module) && includes(module, /image: 'small'/),
  )

type PlanOptions = {
  processors: number
  /** True: one process may run several test files (test-batches.ts). */
  sharesProcesses: boolean
}

export const planOf = (
  files: readonly string[],
  { processors, sharesProcesses }: PlanOptions,
): [first: Lanes, ...later: Lanes[]] => {
  const inServers = files.filter((file) => needsServer(file) && !measuresHostMemory(file) && !checksTime(file))
  // Test files in test/ begin first. They take longest, because they start several programs and wait for them.
  const rest = files.filter((file) => !needsServer(file))
  const code = [...rest.filter((file) => file.startsWith('test/')), ...rest.filter((file) => !file.startsWith('test/'))]
  const sharing = inServers.filter(sharesServer)
  const measuring = eachAlone(sharing.filter(measuresServer))
  const shared = eachAlone(sharing.filter((file) => !measuresServer(file)))
  const owners = inServers.filter((file) => !sharesServer(file))
  const own = eachAlone([...owners.filter((file) => !wantsRealImage(file)), ...owners.filter(wantsRealImage)])
  const batched = (some: readonly string[], lanes: number): Queue =>
    sharesProcesses ? batchesOf(some, lanes) : eachAlone(some)
  const pure = batched(
    code.filter((file) => needsOf(file).size === 0),
    processors,
  )
  const database = batched(
    code.filter((file) => needsOf(file).has('database')),
    processors,
  )
  const programs = eachAlone(code.filter((file) => needsOf(file).has('programs') && !needsOf(file).has('database')))

  const inLanes = (lane: readonly Queue[], count: number) => Array.from({ length: count }, () => lane)
  return [
    [
      [pure, programs, own, database],
      [shared, own, programs, pure, database],
      [measuring, shared, own, programs, pure, database],
      ...inLanes([own, programs, pure, database], processors),
      ...inLanes([programs, own, pure, database], processors - 1),
    ],
    [[eachAlone(files.filter((file) => measuresHostMemory(file) || checksTime(file)))]],
  ]
}
