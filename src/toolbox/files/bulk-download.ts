// Sends many files in one answer: a multipart form with one part per path, in order. Each part is a file or an error.
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { renderProblem } from '#src/http/render-problem.ts'
import type { FileContents, Files } from '../agent/agent.ts'
import { formData } from './disposition.ts'
import { problemOf } from './failures.ts'

/** Value of the `source` field of every toolbox error. */
const source = 'DAYTONA_DAEMON'

/** Returns the header of a part. Clients compute their progress from the length in the header. */
const headerOf = (boundary: string, name: 'file' | 'error', filename: string, type: string, length: number): Buffer =>
  Buffer.from(
    `--${boundary}\r\nContent-Disposition: ${formData(name, filename)}\r\n` +
      `Content-Type: ${type}\r\nContent-Length: ${length}\r\n\r\n`,
  )

const lineBreak = Buffer.from('\r\n')

async function* parts(files: Files, paths: readonly string[], boundary: string, request: FastifyRequest) {
  for (const path of paths) {
    let file: FileContents | undefined
    try {
      file = await files.read(path)
    } catch (error) {
      const body = Buffer.from(JSON.stringify(renderProblem(problemOf(error, { path }), request, source)))
      yield headerOf(boundary, 'error', path, 'application/json', body.length)
      yield body
    }
    if (file !== undefined) {
      try {
        yield headerOf(boundary, 'file', path, 'application/octet-stream', file.length)
        // If a file becomes shorter meanwhile, this stream throws and breaks off the answer. The client must not mistake the file
        // for complete.
        yield* file.stream as AsyncIterable<Buffer>
      } finally {
        file.stream.destroy()
      }
    }
    yield lineBreak
  }
  yield Buffer.from(`--${boundary}--\r\n`)
}

export const bulkDownload = (
  files: Files,
  paths: readonly string[],
  request: FastifyRequest,
  reply: FastifyReply,
): Readable => {
  const boundary = `alcove-${randomUUID()}`
  reply.header('content-type', `multipart/form-data; boundary=${boundary}`)
  return Readable.from(parts(files, paths, boundary, request), { objectMode: false })
}
