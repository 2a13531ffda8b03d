// The key of a line: a hash of all that its result depends on. Two builds of one organization that come to the same key would do
// the same on the same disk, so the second takes what the first has kept.
//
// A secret has no content here: only its id is in the key. The number of the line and the names of stages are not in it.
import { createHash } from 'node:crypto'
import type { BuildStep } from '../images/definition/plan.ts'

/** Another number once the same line may have another result: a change of how lines are carried out. */
const generation = 1

const hashOf = (...parts: unknown[]): string =>
  createHash('sha256')
    .update(JSON.stringify([generation, ...parts]))
    .digest('hex')
    .slice(0, 32)

/** The key of a stage before its first line. */
export const keyOfBase = (files: string): string => hashOf('base', files)

/** `inputs`: what the files are that the line takes from elsewhere, in the order in which it names them. */
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
