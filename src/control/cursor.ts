// A cursor says where the next page of a list begins. A cursor is valid only for one sort column and order.
import { Problem } from '#src/problems.ts'

type Cursor = { sort: string; order: 'asc' | 'desc'; value: string | number; id: string }

export const writeCursor = ({ sort, order, value, id }: Cursor): string =>
  Buffer.from(JSON.stringify([sort, order, value, id])).toString('base64url')

const parse = (text: string): unknown => {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
  } catch {
    return undefined
  }
}

type ValueIs = 'text' | 'number' | 'count' | 'time'

/** Whether a value from a cursor fits a column of this type. A caller can send any text as a cursor. */
const isValue: Record<ValueIs, (value: unknown) => value is string | number> = {
  text: (value): value is string => typeof value === 'string' && !value.includes('\0'),
  number: (value): value is number => Number.isInteger(value) && Math.abs(value as number) < 2 ** 31,
  count: (value): value is number => Number.isSafeInteger(value) && (value as number) >= 0,
  time: (value): value is string => typeof value === 'string' && isIsoTime(value),
}

/** Reads a cursor that a caller sent. Throws 400 if the text is no cursor for this sort column and order. */
export const readCursor = (
  text: string,
  expected: { sort: string; order: 'asc' | 'desc'; valueIs: ValueIs },
): Cursor => {
  const wrong = () => new Problem('bad_request', 'query.cursor is not one that was given out for this sort and order')
  const parts = parse(text)
  if (!Array.isArray(parts) || parts.length !== 4) throw wrong()
  const [sort, order, value, id] = parts as unknown[]
  if (sort !== expected.sort || order !== expected.order) throw wrong()
  if (!isValue.text(id) || !isValue[expected.valueIs](value)) throw wrong()
  return { sort: expected.sort, order: expected.order, value, id: id as string }
}

/** Whether a text is an ISO time with a four-digit year. Longer years get a sign, which PostgreSQL cannot read. */
const isIsoTime = (text: string): boolean => {
  const time = Date.parse(text)
  return text.length === 24 && text >= '0001' && Number.isFinite(time) && new Date(time).toISOString() === text
}
