// Decides which test files run in one process, one after the other. Loading control takes longer than most of its
// tests. Test files of control therefore run in one process, which loads control once. Files of pure code share a process too.
//   shared   Files that need a database: they use control through its own interface, and each test has a database of its own.
//            Files of pure code.
//   alone    Files that start programs, and files that change or measure their process.
import { readFileSync } from 'node:fs'
import { needsOf } from './test-needs.ts'

/** Files that run in one process. */
export type Batch = readonly string[]

/**
 * Matches the text of a test file that affects its process, or measures it. A mock or a change of `process` would
 * affect all files of the process. A measurement of the process would include all of its files.
 */
const concernsProcess = /\bmock\b|\bprocess\.|syncBuiltinESMExports/

const mayShare = (file: string): boolean => {
  const needs = needsOf(file)
  return (needs.has('database') || !needs.has('programs')) && !concernsProcess.test(readFileSync(file, 'utf8'))
}

/** Most files in one process. With more files, one lane would still be busy when all other lanes have finished. */
const mostFiles = 8

export const eachAlone = (files: readonly string[]): Batch[] => files.map((file) => [file])

/** Splits files into batches, in order. Each of `lanes` lanes gets a batch if there are enough files. */
export const batchesOf = (files: readonly string[], lanes: number): Batch[] => {
  const sharing = files.filter(mayShare)
  const size = Math.max(1, Math.min(mostFiles, Math.ceil(sharing.length / lanes)))
  return files.flatMap((file) => {
    const at = sharing.indexOf(file)
    if (at < 0) return [[file]]
    return at % size === 0 ? [sharing.slice(at, at + size)] : []
  })
}
