// Logs for SDKs before 0.167: one text with a marker before the output of each stream. These SDKs split the text themselves.
import type { FastifyRequest } from 'fastify'
import { sdkSourceHeader, sdkVersionHeader } from '#src/wire/access.ts'

const firstWithJson = [0, 167] as const

/**
 * Whether a caller gets a log as text with markers, which SDKs before 0.167 expect. An SDK that sends no version is older than
 * that. All other callers get JSON: newer SDKs, development builds (version 0.0), and callers without SDK headers.
 */
export const wantsMarks = ({ headers }: Pick<FastifyRequest, 'headers'>): boolean => {
  const version = headers[sdkVersionHeader]
  if (version === undefined) return headers[sdkSourceHeader] !== undefined
  const [, major, minor] = /^v?(\d{1,9})\.(\d{1,9})/.exec(String(version)) ?? []
  if (major === undefined || (Number(major) === 0 && Number(minor) === 0)) return false
  return Number(major) === firstWithJson[0] && Number(minor) < firstWithJson[1]
}
