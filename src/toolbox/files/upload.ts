// Files that come in. Nothing is changed before all of a file is on the sandbox's disk; only what is on the way between
// two sockets is in memory.
import type { IncomingMessage } from 'node:http'
import { giveBack } from '#src/kit/pour.ts'
import { Problem } from '#src/problems.ts'
import type { Files } from '../agent/agent.ts'
import { problemOf, told } from './failures.ts'
import { boundaryOf, type Part, readParts, readText } from './multipart.ts'

/** A path and a file each. */
const maxParts = 2 * 1000
const pathBytes = 16 * 1024

/**
 * Each piece is gone when the next one is asked for. Leaving the loop must not break the connection, on which the answer is
 * still to come.
 */
async function* bodyOf(request: IncomingMessage): AsyncGenerator<Buffer, void, void> {
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      yield chunk as Buffer
      giveBack(chunk as Buffer)
    }
  } catch (cause) {
    throw new Problem('bad_request', 'The upload was cut short.', { cause })
  }
}

const write = (files: Files, path: string | Buffer, contents: AsyncIterable<Buffer>): Promise<void> =>
  files.write(path, contents, { makeParents: true })

/** The field `file` of a form, or else the body itself, whatever type it says it has. */
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

/** Answers why this file could not be written. */
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
    // What is wrong with the body, or with the sandbox, is wrong with the files that follow, too.
    if (error === problem || problem.status >= 500) throw problem
    return problem
  }
}

/**
 * Files that failed for one reason fail the call for it. Where the reasons differ, the call may be tried again if that may
 * help any of them.
 */
const together = (failures: readonly Problem[]): Problem => {
  const codes = new Set(failures.map(({ code }) => code))
  const [first] = codes
  const mixed = codes.has('rate_limited') ? 'rate_limited' : 'bad_request'
  const sentence = failures.map(({ message }) => message).join(' ')
  return new Problem(codes.size === 1 && first ? first : mixed, sentence, { cause: failures[0]?.cause })
}

/** `files[i].path` and then `files[i].file`, any number of times. One that fails does not keep the others from coming. */
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
