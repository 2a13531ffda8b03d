// Logs for SDKs before 0.167: one text with a marker before the output of each stream. These SDKs split the text themselves.
import type { FastifyRequest } from 'fastify'
import { sdkSourceHeader, sdkVersionHeader } from '#src/wire/access.ts'

const firstWithJson = [0, 167] as const

/**
 * Whether a caller gets text with markers. A caller without SDK headers gets JSON. An SDK that sends no version is an old
 * one, so it gets markers. Version 0.0 is a development build, which gets JSON.
 */
export const wantsMarks = ({ headers }: Pick<FastifyRequest, 'headers'>): boolean => {
  const version = headers[sdkVersionHeader]
  if (version === undefined) return headers[sdkSourceHeader] !== undefined
  const [, major, minor] = /^v?(\d{1,9})\.(\d{1,9})/.exec(String(version)) ?? []
  if (major === undefined || (Number(major) === 0 && Number(minor) === 0)) return false
  return Number(major) === firstWithJson[0] && Number(minor) < firstWithJson[1]
}
