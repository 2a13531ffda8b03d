// Sends a file, whole or one range of it (RFC 9110 §14), at the caller's pace.
import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Files } from '../agent/agent.ts'
import { attachment } from './disposition.ts'
import { aboutPath, told } from './failures.ts'

type Range = { from: number; length?: number } | { last: number }

const maxOffset = 2 ** 53 - 1

/**
 * Reads a single byte range from the header `Range`. `undefined` for anything else, and with `If-Range`, which Alcove cannot check.
 */
const rangeOf = ({ headers }: FastifyRequest): Range | undefined => {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/i.exec(headers.range?.trim() ?? '') ?? []
  if (headers['if-range'] !== undefined || (first === '' && last === '')) return undefined
  const [from, to] = [Number(first), Number(last)].map((number) => Math.min(number, maxOffset)) as [number, number]
  if (first === '') return { last: to }
  if (last === '') return { from }
  return to < from ? undefined : { from, length: Math.min(to - from + 1, maxOffset) }
}

const open = async (files: Files, path: string, range: Range | undefined) => {
  if (range === undefined) return { offset: 0, ...(await files.read(path)) }
  if ('last' in range) {
    // Opens the file to learn its size, because the size that `stat` reports may be wrong.
    const { size, stream } = await files.read(path, { length: 0 })
    stream.destroy()
    const offset = Math.max(0, size - range.last)
    return { offset, ...(await files.read(path, { offset, length: range.last })) }
  }
  const { from: offset, length } = range
  return { offset, ...(await files.read(path, { offset, ...(length === undefined ? {} : { length }) })) }
}

export const download = (files: Files, path: string, request: FastifyRequest, reply: FastifyReply): Promise<Readable> =>
  told(
    async () => {
      const range = request.method === 'GET' ? rangeOf(request) : undefined
      // For HEAD, ask for the size without reading any contents.
      const wanted = request.method === 'HEAD' ? { from: 0, length: 0 } : range
      const { offset, size, length, stream } = await open(files, path, wanted)
      if (range !== undefined && length === 0) {
        stream.destroy()
        reply.header('content-range', `bytes */${size}`)
        throw aboutPath('range', path, `The file has ${size} bytes.`)
      }
      reply.headers({
        'content-type': 'application/octet-stream',
        'content-disposition': attachment(path.split('/').at(-1) ?? ''),
        'content-length': request.method === 'HEAD' ? size : length,
        'accept-ranges': 'bytes',
        'x-content-type-options': 'nosniff',
      })
      if (range !== undefined) {
        reply.status(206).header('content-range', `bytes ${offset}-${offset + length - 1}/${size}`)
      }
      return stream
    },
    { path },
  )
