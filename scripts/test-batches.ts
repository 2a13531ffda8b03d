// Decides which test files run in one process, one after the other. Loading control takes longer than most of its
// tests. Test files of control therefore run in one process, which loads control once. Files of pure code share a process too.
//   shared   Files that need only a database. Each of their tests has a database of its own. Files of pure code.
//   alone    Files that start programs, that replace parts of Node (mocks), or that measure their own process. Files in test/,
//            which take minutes.
import { readFileSync } from 'node:fs'
import { needsOf } from './test-needs.ts'

/** Test files that one process runs, one after the other. */
export type Batch = readonly string[]

/**
 * Matches test files that change their process or measure it. A mock, or a change of `process`, would affect all other
 * files of the process. A measurement would include all other files.
 */
const concernsProcess = /\bmock\b|\bprocess\.|syncBuiltinESMExports/

const mayShare = (file: string): boolean => {
  const needs = needsOf(file)
  if (file.startsWith('test/')) return false
  return (needs.has('database') || !needs.has('programs')) && !concernsProcess.test(readFileSync(file, 'utf8'))
}

/**
 * Maximum number of files in one process. With more, one lane would still be busy with a long batch when the other
 * lanes have finished.
 */
const mostFiles = 8

export const eachAlone = (files: readonly string[]): Batch[] => files.map((file) => [file])

/**
 * Splits test files into batches, in their order. The files that may share a process are divided evenly over `lanes` lanes, but a
 * batch has at most `mostFiles` of them. Every other file is a batch of its own.
 */
export const batchesOf = (files: readonly string[], lanes: number): Batch[] => {
  const sharing = files.filter(mayShare)
  const size = Math.max(1, Math.min(mostFiles, Math.ceil(sharing.length / lanes)))
  return files.flatMap((file) => {
    const at = sharing.indexOf(file)
    if (at < 0) return [[file]]
    return at % size === 0 ? [sharing.slice(at, at + size)] : []
  })
}
