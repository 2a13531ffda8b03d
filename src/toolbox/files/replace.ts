// Replaces a text, not a pattern, in files. Each file is streamed, and replaced as a whole or not at all.

import type { Deadline } from '#src/toolbox/running/deadline.ts'
import type { Files } from '../agent/agent.ts'
import { aboutPath, problemOf } from './failures.ts'
import type { ReplaceRequest, ReplaceResult } from './schemas.ts'

const pieceBytes = 64 * 1024

/** Thrown to abort a write if the old file is binary or lacks the text. The old file stays. */
class Untouched extends Error {
  readonly isFailure: boolean

  constructor(sentence: string, isFailure: boolean) {
    super(sentence)
    this.isFailure = isFailure
  }
}

/** Collects small pieces of the new file and joins them into a larger one, because writing each piece alone would be slow. */
class Gathered {
  #pieces: Buffer[] = []
  #size = 0

  /** Adds a piece. Returns true if the collected pieces are large enough to be written. */
  add(piece: Buffer): boolean {
    this.#pieces.push(piece)
    this.#size += piece.length
    return this.#size >= pieceBytes
  }

  take(): Buffer {
    const whole = Buffer.concat(this.#pieces, this.#size)
    this.#pieces = []
    this.#size = 0
    return whole
  }
}

/** Replaces every `from` by `to`, even across two chunks. Holds little more than one chunk in memory. */
export async function* replacing(
  chunks: AsyncIterable<Buffer>,
  from: Buffer,
  to: Buffer,
  onFound: () => void,
): AsyncGenerator<Buffer, void, void> {
  const gathered = new Gathered()
  let held: Buffer = Buffer.alloc(0)
  for await (const chunk of chunks) {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk])
    let start = 0
    for (let at = held.indexOf(from); at >= 0; at = held.indexOf(from, start)) {
      onFound()
      gathered.add(held.subarray(start, at))
      if (gathered.add(to)) yield gathered.take()
      start = at + from.length
    }
    // The last bytes of a chunk may be the beginning of a match, so they wait for the next chunk.
    const rest = Math.max(start, held.length - from.length + 1)
    if (gathered.add(held.subarray(start, rest))) yield gathered.take()
    held = held.subarray(rest)
  }
  gathered.add(held)
  const last = gathered.take()
  if (last.length > 0) yield last
}

async function* textOnly(chunks: AsyncIterable<Buffer>, { signal }: Deadline): AsyncGenerator<Buffer, void, void> {
  for await (const chunk of chunks) {
    signal.throwIfAborted()
    if (chunk.includes(0)) throw new Untouched('This is a binary file; nothing was replaced.', true)
    yield chunk
  }
}

const replaceIn = async (files: Files, file: string, from: Buffer, to: Buffer, deadline: Deadline) => {
  const { stream } = await files.read(file)
  let count = 0
  const contents = async function* () {
    yield* replacing(textOnly(stream, deadline), from, to, () => {
      count++
    })
    if (count === 0) throw new Untouched('There is nothing to replace.', false)
  }
  try {
    await files.write(file, contents())
  } finally {
    stream.destroy()
  }
}

/** Returns one result per file, in order. A file without the text is a success and stays unchanged. */
export const replaceInFiles = async (
  files: Files,
  { files: paths, pattern, newValue }: ReplaceRequest,
  deadline: Deadline,
): Promise<ReplaceResult[]> => {
  const [from, to] = [Buffer.from(pattern), Buffer.from(newValue)]
  const results: ReplaceResult[] = []
  for (const file of paths) {
    deadline.signal.throwIfAborted()
    try {
      await replaceIn(files, file, from, to, deadline)
      results.push({ file, success: true })
    } catch (error) {
      if (deadline.signal.aborted) throw deadline.signal.reason
      if (error instanceof Untouched && !error.isFailure) results.push({ file, success: true })
      else {
        const problem = error instanceof Untouched ? aboutPath('bad_request', file, error.message) : error
        results.push({ file, success: false, error: problemOf(problem, { path: file }).message })
      }
    }
  }
  return results
}
