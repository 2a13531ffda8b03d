// Computes a hash of the files that a COPY line makes, without their times, as in Docker.
import { createHash } from 'node:crypto'
import { EventLoopTurns } from '#src/kit/yield.ts'
import { type CopyRequest, type Selection, select, type WantedFiles } from './selection.ts'
import type { Tree } from './tree.ts'

/**
 * Two COPY lines with the same destination and hash make the same files. The hash assumes that the destination is a directory: only
 * earlier lines decide this. Throws the errors of `select`.
 */
export const fingerprintOf = async (tree: Tree, wanted: CopyRequest, signal: AbortSignal): Promise<string> => {
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
