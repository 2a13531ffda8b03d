// Computes the cache key of a line: a hash of everything on which the line's result depends. Builds of one organization share
// lines with equal keys.
//
// The key contains the id of a secret, but not its value. It contains neither the line's number nor the names of stages.
import { createHash } from 'node:crypto'
import type { BuildStep } from '../images/definition/plan.ts'

/** A part of each cache key. Increase it when a change of the code for builds may change the result of a line. */
const generation = 1

const hashOf = (...parts: unknown[]): string =>
  createHash('sha256')
    .update(JSON.stringify([generation, ...parts]))
    .digest('hex')
    .slice(0, 32)

/** Returns the cache key of a disk with only the files of a base image. `files`: text that identifies these files. */
export const keyOfBase = (files: string): string => hashOf('base', files)

/** Returns the cache key of the disk after a line. `before`: the key before the line. `inputs`: see line-inputs.ts. */
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
