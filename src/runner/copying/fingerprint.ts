// Computes a hash of the files that a COPY line makes, without their times, as in Docker.
import { createHash } from 'node:crypto'
import { EventLoopTurns } from '#src/kit/yield.ts'
import { type CopyRequest, type Selection, select, type WantedFiles } from './selection.ts'
import type { Tree } from './tree.ts'

/**
 * Returns a hash for a COPY line. Two lines make the same files if their hash, their destination and all earlier lines are equal.
 * Throws the errors of `select`.
 */
export const fingerprintOf = async (tree: Tree, wanted: CopyRequest, signal: AbortSignal): Promise<string> => {
  // `true`: the hash treats every destination as a directory. In the build, earlier lines of the
  // Dockerfile decide whether the destination is a directory.
  const selection = await select(tree, wanted, true, signal)
  const lines = linesOf(selection).sort()
  const turns = new EventLoopTurns(signal)
  const hash = createHash('sha256')
  for (const line of lines) {
    await turns.next()
    hash.update(line).update('\n')
  }
  return hash.digest('hex')
}

const linesOf = ({ made, files, unpacked }: Selection): string[] => [
  ...made.map((each) => JSON.stringify(each)),
  ...fileLines(files, 'file'),
  ...fileLines(unpacked, 'archive'),
]

const fileLines = (wanted: WantedFiles, kind: string): string[] =>
  [...wanted.withContents()].flatMap(({ content, files }) => {
    if (content.digest === undefined) throw new TypeError('the bytes of a file are not known')
    return files.map(({ modifiedSeconds: _, ...file }) => JSON.stringify([kind, content.digest, file]))
  })
