// Logs for SDKs before 0.167: one text with a marker before the output of each stream. These SDKs split the text themselves.
import type { FastifyRequest } from 'fastify'
import { sdkSourceHeader, sdkVersionHeader } from '#src/wire/access.ts'

const firstWithJson = [0, 167] as const

/**
 * Whether a caller gets a log with markers: true for SDKs before 0.167, which include SDKs that send no version. All other callers
 * get JSON, including development builds (0.0) and callers without SDK headers.
 */
export const wantsMarks = ({ headers }: Pick<FastifyRequest, 'headers'>): boolean => {
  const version = headers[sdkVersionHeader]
  if (version === undefined) return headers[sdkSourceHeader] !== undefined
  const [, major, minor] = /^v?(\d{1,9})\.(\d{1,9})/.exec(String(version)) ?? []
  if (major === undefined || (Number(major) === 0 && Number(minor) === 0)) return false
  return Number(major) === firstWithJson[0] && Number(minor) < firstWithJson[1]
}
