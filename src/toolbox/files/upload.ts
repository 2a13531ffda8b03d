// Receives files. A file is changed when all its contents are on the sandbox's disk. Memory holds only the bytes in transit.
import type { IncomingMessage } from 'node:http'
import { giveBack } from '#src/kit/pour.ts'
import { Problem } from '#src/problems.ts'
import type { Files } from '../agent/agent.ts'
import { problemOf, told } from './failures.ts'
import { boundaryOf, type Part, readParts, readText } from './multipart.ts'

/** Maximum number of parts in a form: two per file, its path and its contents. */
const maxParts = 2 * 1000
const pathBytes = 16 * 1024

/**
 * The body of an upload in pieces. A piece's memory is reused when the next piece is requested. If the reader stops early, the
 * connection stays open for the answer.
 */
async function* bodyOf(request: IncomingMessage): AsyncGenerator<Buffer, void, void> {
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      yield chunk as Buffer
      giveBack(chunk as Buffer)
    }
  } catch (cause) {
    // A body that comes too slowly throws a Problem already (408). Any other error means that the body was cut short.
    throw cause instanceof Problem ? cause : new Problem('bad_request', 'The upload was cut short.', { cause })
  }
}

const write = (files: Files, path: string | Buffer, contents: AsyncIterable<Buffer>): Promise<void> =>
  files.write(path, contents, { makeParents: true })

/** Stores the field `file` of a form. A body that is not a form is itself the file, whatever its type. */
export const upload = (files: Files, path: string, request: IncomingMessage): Promise<void> =>
  told(
    async () => {
      const boundary = boundaryOf(request.headers['content-type'])
      if (boundary === undefined) return await write(files, path, bodyOf(request))
      let isThere = false
      for await (const part of readParts(bodyOf(request), boundary, maxParts)) {
        if (part.name !== 'file' || isThere) continue
        isThere = true
        await write(files, path, part.contents)
      }
      if (!isThere) throw new Problem('bad_request', 'The form has no field `file`.')
    },
    { path },
  )

type Paths = Map<string, Buffer>

const fieldOf = ({ name }: Part) => /^files\[(\d{1,9})\]\.(path|file)$/.exec(name)

const withoutPath = (sentence: string) => new Problem('bad_request', sentence)

/** Stores a part. Returns the Problem if its file could not be written. */
const storePart = async (files: Files, part: Part, paths: Paths): Promise<Problem | undefined> => {
  const [, index = '', kind] = fieldOf(part) ?? []
  if (kind === 'path') paths.set(index, await readText(part, pathBytes))
  if (kind !== 'file') return undefined
  const path = paths.get(index)
  if (path === undefined || path.length === 0) return withoutPath(`files[${index}].path must come before ${part.name}.`)
  if (path.includes(0)) return withoutPath(`files[${index}].path must not contain a NUL character.`)
  try {
    await write(files, path, part.contents)
    return undefined
  } catch (error) {
    const problem = problemOf(error, { path: path.toString('utf8') })
    // Stop if the request's body or the sandbox has failed, because all following files would fail too.
    if (error === problem || problem.status >= 500) throw problem
    return problem
  }
}

/**
 * Combines failures of several files into one Problem with their common code. If the codes differ, the Problem is `rate_limited` if
 * one failure is, because a retry may help. Otherwise it is `bad_request`.
 */
const together = (failures: readonly Problem[]): Problem => {
  const codes = new Set(failures.map(({ code }) => code))
  const [first] = codes
  const mixed = codes.has('rate_limited') ? 'rate_limited' : 'bad_request'
  const sentence = failures.map(({ message }) => message).join(' ')
  return new Problem(codes.size === 1 && first ? first : mixed, sentence, { cause: failures[0]?.cause })
}

/** Stores files from pairs of `files[i].path` and `files[i].file`. A failed file does not stop the others. */
export const bulkUpload = (files: Files, request: IncomingMessage): Promise<void> =>
  told(async () => {
    const boundary = boundaryOf(request.headers['content-type'])
    if (boundary === undefined) throw new Problem('bad_request', 'This needs a body of type multipart/form-data.')
    const paths: Paths = new Map()
    const failures: Problem[] = []
    for await (const part of readParts(bodyOf(request), boundary, maxParts)) {
      const failure = await storePart(files, part, paths)
      if (failure !== undefined) failures.push(failure)
    }
    if (paths.size === 0) throw new Problem('bad_request', 'The form has no files.')
    if (failures.length > 0) throw together(failures)
  })
