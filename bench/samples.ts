// The measured times of a run: functions that compute statistics of them and write them to files.
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'

/** Milliseconds of each measurement, in the order in which they were made. */
export type Samples = number[]

export const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const before = performance.now()
  await work()
  return performance.now() - before
}

export const percentile = (samples: Samples, share: number): number => {
  const sorted = [...samples].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!
}

export const median = (samples: Samples): number => percentile(samples, 0.5)

/** Returns the median, the 95th percentile and the number of the samples as text. */
export const say = (samples: Samples): string =>
  `${median(samples).toFixed(2)} ms (p95 ${percentile(samples, 0.95).toFixed(2)}, n=${samples.length})`

/** Returns a line of the table: a name, a summary of its times, and the ratio of its median to that of `peer`. */
export const compare = (name: string, ours: Samples, peer?: { name: string; samples: Samples }): string =>
  `${name.padEnd(34)} ${say(ours).padEnd(36)}${
    peer === undefined ? '' : ` ${(median(ours) / median(peer.samples)).toFixed(2)} x ${peer.name}`
  }`

/** Writes all samples as JSON to `bench/results/` and returns the path of the file. */
export const keep = (name: string, facts: Record<string, unknown>): string => {
  const directory = join(import.meta.dirname, 'results')
  mkdirSync(directory, { recursive: true })
  const at = new Date().toISOString().slice(0, 19).replaceAll(':', '-')
  const path = join(directory, `${name}-${at}.json`)
  const machine = { cpus: cpus().length, memoryBytes: totalmem(), kernel: release(), node: process.version }
  writeFileSync(path, `${JSON.stringify({ at, machine, ...facts }, null, 1)}\n`)
  return path
}

/** With the argument `wait`, waits for the Enter key. So a person can start the program first, and the measurement later. */
export const whenAsked = async (): Promise<void> => {
  if (!process.argv.includes('wait')) return
  console.log('ready: Enter begins to measure')
  await once(process.stdin, 'data')
  process.stdin.destroy()
}
