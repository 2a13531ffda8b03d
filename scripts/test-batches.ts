// Decides which test files share a process. A shared process loads control once, which takes longer than most tests.
//   shared   Files of pure code, and files that need only a database. Each test has a database of its own.
//   alone    Files that start programs, replace parts of Node (mocks) or measure their own process, and files in test/.
import { readFileSync } from 'node:fs'
import { needsOf } from './test-needs.ts'

/** Test files that one process runs, one after the other. */
export type Batch = readonly string[]

/** Matches test files that change or measure their process, and so cannot share this process with other files. */
const concernsProcess = /\bmock\b|\bprocess\.|syncBuiltinESMExports/

const mayShare = (file: string): boolean => {
  const needs = needsOf(file)
  if (file.startsWith('test/')) return false
  return (needs.has('database') || !needs.has('programs')) && !concernsProcess.test(readFileSync(file, 'utf8'))
}

/** Maximum number of files in one process. Longer batches would keep one lane (worker) busy when the other lanes have finished. */
const mostFiles = 8

export const eachAlone = (files: readonly string[]): Batch[] => files.map((file) => [file])

/** Splits test files into batches. Files that may share a process are divided evenly over the lanes (workers). */
export const batchesOf = (files: readonly string[], lanes: number): Batch[] => {
  const sharing = files.filter(mayShare)
  const size = Math.max(1, Math.min(mostFiles, Math.ceil(sharing.length / lanes)))
  return files.flatMap((file) => {
    const at = sharing.indexOf(file)
    if (at < 0) return [[file]]
    return at % size === 0 ? [sharing.slice(at, at + size)] : []
  })
}
