// Computes the cache key of a line: a hash of everything on which the line's result depends. If two builds of one organization
// compute equal keys, the line has the same result in both. The second build therefore uses the line that the first build has
// cached.
//
// The key contains the id of a secret, but not its value. It contains neither the line's number nor the names of stages.
import { createHash } from 'node:crypto'
import type { BuildStep } from '../images/definition/plan.ts'

/** A part of each cache key. Increase this number when a change of the code for builds may change the result of a line. */
const generation = 1

const hashOf = (...parts: unknown[]): string =>
  createHash('sha256')
    .update(JSON.stringify([generation, ...parts]))
    .digest('hex')
    .slice(0, 32)

/** Returns the cache key of a disk that has only the files of a base image. `files`: text that identifies these files. */
export const keyOfBase = (files: string): string => hashOf('base', files)

/**
 * Returns the cache key of the disk after a line of a Dockerfile. `before`: the cache key of the disk before the line. `inputs`:
 * contents of the line's inputs (line-inputs.ts), in the order in which the line names them.
 */
export const keyAfter = (before: string, step: BuildStep, inputs: readonly string[]): string =>
  hashOf(before, meaningOf(step), inputs)

const meaningOf = (step: BuildStep): unknown => {
  if ('directory' in step) return ['directory', step.directory]
  if ('copy' in step) {
    const { from: _, ...copy } = step.copy
    return ['copy', copy]
  }
  const { line: _, mounts = [], ...run } = step
  return ['run', run, mounts.map(withoutOrigin)]
}

const withoutOrigin = (mount: object): unknown => ({ ...mount, from: 'from' in mount })
