// Computes the progress of a build of the default image from lines that mmdebstrap and the package tools print.
import type { Progress } from '#src/wire/runner-link.ts'

/**
 * A phase of the build. `says`: text of the line that mmdebstrap prints when the phase begins. `step`: the phase's name for the
 * operator. `from` and `to`: progress in percent. `steps`: how many lines the phase prints for each package.
 */
type Phase = { says: string; step: string; from: number; to: number; steps: number }

const phases: readonly Phase[] = [
  { says: 'running apt-get update', step: 'reading package lists', from: 1, to: 4, steps: 0 },
  { says: 'downloading packages with apt', step: 'downloading the base system', from: 4, to: 14, steps: 1 },
  { says: 'extracting archives', step: 'unpacking the base system', from: 14, to: 20, steps: 0 },
  { says: 'installing essential packages', step: 'installing the base system', from: 20, to: 40, steps: 2 },
  { says: 'installing remaining packages', step: 'installing Python, compilers and tools', from: 40, to: 85, steps: 3 },
  { says: 'cleaning package lists', step: 'cleaning up', from: 85, to: 88, steps: 0 },
  { says: 'creating tarball', step: 'packing', from: 88, to: 95, steps: 0 },
]

/** Returns a function that turns a printed line into the progress, or into undefined if the line shows no progress. */
export const createProgressReader = (): ((line: string) => Progress | undefined) => {
  let phase: Phase | undefined
  let packages = 0
  let counted = 0
  return (line) => {
    const next = phases.find(({ says }) => line.startsWith(`I: ${says}`))
    if (next !== undefined) {
      phase = next
      counted = 0
      return { step: next.step, percent: next.from }
    }
    const total = /^\d+ upgraded, (\d+) newly installed/.exec(line)?.[1]
    if (total !== undefined) packages = Number(total)
    if (phase === undefined || phase.steps === 0 || packages === 0) return undefined
    if (!/^(Get:\d+|Unpacking|Setting up) /.test(line)) return undefined
    counted++
    const share = Math.min(1, counted / (packages * phase.steps))
    return { step: phase.step, percent: Math.floor(phase.from + share * (phase.to - phase.from)) }
  }
}
