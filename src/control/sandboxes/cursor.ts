// Where a listing goes on: opaque to callers, bound to the sort and order it was made with.
import { Problem } from '#src/problems.ts'

export type Cursor = { sort: string; order: 'asc' | 'desc'; value: string | number; id: string }

export const writeCursor = ({ sort, order, value, id }: Cursor): string =>
  Buffer.from(JSON.stringify([sort, order, value, id])).toString('base64url')

const parse = (text: string): unknown => {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
  } catch {
    return undefined
  }
}

/** Reads a cursor that a caller brought back; anything else than what we gave for this very sort is a 400. */
export const readCursor = (
  text: string,
  expected: { sort: string; order: 'asc' | 'desc'; valueIs: 'text' | 'number' | 'time' },
): Cursor => {
  const wrong = () => new Problem('bad_request', 'query.cursor is not one that was given out for this sort and order')
  const parts = parse(text)
  if (!Array.isArray(parts) || parts.length !== 4) throw wrong()
  const [sort, order, value, id] = parts as unknown[]
  if (sort !== expected.sort || order !== expected.order || typeof id !== 'string' || id.includes('\0')) throw wrong()
  if (expected.valueIs === 'number') {
    if (!Number.isSafeInteger(value)) throw wrong()
    return { sort: expected.sort, order: expected.order, value: value as number, id }
  }
  if (typeof value !== 'string' || value.includes('\0')) throw wrong()
  if (expected.valueIs === 'time' && !isIsoTime(value)) throw wrong()
  return { sort: expected.sort, order: expected.order, value, id }
}

const isIsoTime = (text: string): boolean => {
  const time = Date.parse(text)
  return Number.isFinite(time) && new Date(time).toISOString() === text
}
