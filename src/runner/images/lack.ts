// Finds out whether the default image lacks a program. The build of the image omits an optional program that it cannot download.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Generations } from './generations.ts'

/**
 * Returns which program the default image lacks, as the end of a sentence. Looks in the image's files, because only the process
 * that built the image knows the errors of the build.
 */
export const lackOfDefault = (runnerDirectory: string): string | undefined => {
  const generations = new Generations(join(runnerDirectory, 'images'))
  const image = generations.current()
  if (image === undefined || existsSync(join(generations.rootfsOf(image), 'usr/local/bin/uv'))) return undefined
  return 'has no uv, because PyPI could not be reached'
}
