// The key of a line: a hash of all that its result depends on. If two builds of one organization compute the same key, the line
// would have the same result, so the second build uses the line that the first has kept.
//
// A secret's content is not in the key, only its id. The number of the line and the names of stages are not in it.
import { createHash } from 'node:crypto'
import type { BuildStep } from '../images/definition/plan.ts'

/** Must be increased when a change of the builder may change the result of a line. */
const generation = 1

const hashOf = (...parts: unknown[]): string =>
  createHash('sha256')
    .update(JSON.stringify([generation, ...parts]))
    .digest('hex')
    .slice(0, 32)

/** The key of a stage before its first line. */
export const keyOfBase = (files: string): string => hashOf('base', files)

/** `inputs`: names of the line's inputs by their content (line-inputs.ts), in the order of the line. */
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
