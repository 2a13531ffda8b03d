// Logs for SDKs before 0.167: one text, in which a mark stands before what each stream wrote. They take the text apart themselves.
import type { FastifyRequest } from 'fastify'
import { sdkVersionHeader } from '#src/wire/access.ts'

const firstWithJson = [0, 167] as const

/** A caller that names no version is no such SDK: it gets the JSON of the interface. 0.0 is a development build. */
export const wantsMarks = ({ headers }: Pick<FastifyRequest, 'headers'>): boolean => {
  const [, major, minor] = /^v?(\d{1,9})\.(\d{1,9})/.exec(String(headers[sdkVersionHeader] ?? '')) ?? []
  if (major === undefined || (Number(major) === 0 && Number(minor) === 0)) return false
  return Number(major) === firstWithJson[0] && Number(minor) < firstWithJson[1]
}
