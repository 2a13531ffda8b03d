// Turns results of language servers into the shapes of the API. Fields that the API does not have are dropped.
import { Problem } from '#src/problems.ts'
import type { CompletionItem, CompletionList, LspSymbol, Position, Range } from './schemas.ts'

type Unknown = Record<string, unknown>

const isObject = (value: unknown): value is Unknown => typeof value === 'object' && value !== null
const objectsIn = (value: unknown): Unknown[] => (Array.isArray(value) ? value.filter(isObject) : [])
const numberIn = (value: unknown): number => (Number.isSafeInteger(value) ? (value as number) : 0)

const texts = (value: Unknown, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const text = value[name]
      return typeof text === 'string' ? [[name, text]] : []
    }),
  )

const documentationOf = (value: unknown): Pick<CompletionItem, 'documentation'> => {
  if (typeof value === 'string') return { documentation: { kind: 'plaintext', value } }
  if (!isObject(value) || typeof value['value'] !== 'string') return {}
  return { documentation: { kind: value['kind'] === 'markdown' ? 'markdown' : 'plaintext', value: value['value'] } }
}

const itemOf = (item: Unknown): CompletionItem[] => {
  const { label, kind, documentation } = item
  if (typeof label !== 'string') return []
  return [
    {
      label,
      ...texts(item, ['detail', 'filterText', 'insertText', 'sortText']),
      ...(Number.isSafeInteger(kind) ? { kind: kind as number } : {}),
      ...documentationOf(documentation),
    },
  ]
}

export const completionsOf = (result: unknown): CompletionList => {
  const items = isObject(result) && !Array.isArray(result) ? result['items'] : result
  const isIncomplete = isObject(result) && result['isIncomplete'] === true
  return { isIncomplete, items: objectsIn(items).flatMap(itemOf) }
}

const positionOf = (value: unknown): Position =>
  isObject(value)
    ? { line: numberIn(value['line']), character: numberIn(value['character']) }
    : { line: 0, character: 0 }

const rangeOf = (value: unknown): Range =>
  isObject(value)
    ? { start: positionOf(value['start']), end: positionOf(value['end']) }
    : { start: positionOf(undefined), end: positionOf(undefined) }

const flatten = (result: unknown, uri: string): LspSymbol[] =>
  objectsIn(result).flatMap((symbol) => {
    const { name, kind, location, range, children } = symbol
    if (typeof name !== 'string') return []
    const place = isObject(location) ? location : { uri, range }
    const own = typeof place['uri'] === 'string' ? place['uri'] : uri
    return [
      { name, kind: numberIn(kind), location: { uri: own, range: rangeOf(place['range']) } },
      ...flatten(children, uri),
    ]
  })

/**
 * Maximum bytes of the copies of the document's URI in one answer. Each symbol has a copy, so a small message could become
 * gigabytes.
 */
const uriBytes = 32 * 1024 * 1024

/**
 * Returns the symbols as a flat list, in which nested symbols follow their container. A symbol without a document gets `uri`.
 * Throws a 422 if all copies of `uri` together exceed `uriBytes`.
 */
export const symbolsOf = (result: unknown, uri = ''): LspSymbol[] => {
  const symbols = flatten(result, uri)
  if (symbols.length * Buffer.byteLength(uri) <= uriBytes) return symbols
  throw new Problem('unprocessable', `The language server found ${symbols.length} symbols, too many for one answer.`)
}
