// Reads the query of a URL. The gate takes the fields that it needs itself, such as a token, and passes on all others.

export const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

const mostEncodings = 4

/** Decodes percent-encoded bytes one by one. Used for text whose bytes are not valid UTF-8. */
const decodedBytes = (text: string): string =>
  text.replaceAll(/%([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))

/**
 * Decodes percent-encoding until none is left, at most `mostEncodings` times. A redirect's URL inside another redirect's URL is
 * encoded twice.
 */
export const decodedFully = (text: string): string => {
  let plain = text
  for (let depth = 0; depth < mostEncodings && plain.includes('%'); depth++) {
    const next = plain.replaceAll(/(?:%[0-9a-f]{2})+/gi, (part) => decoded(part) ?? decodedBytes(part))
    if (next === plain) return plain
    plain = next
  }
  return plain
}

type QueryParts = {
  values: Record<string, string | undefined>
  /** The query without the fields that `takeFromQuery` has removed. It begins with a question mark, or is empty. */
  rest: string
}

/**
 * Removes the named fields from a query and returns their values. For a repeated field, returns the first value that is not empty.
 */
export const takeFromQuery = (query: string, names: readonly string[]): QueryParts => {
  const values: QueryParts['values'] = {}
  const kept: string[] = []
  for (const part of query.replace(/^\?/, '').split('&')) {
    const [encodedName = '', ...value] = part.split('=')
    const name = decoded(encodedName)
    if (name === undefined || !names.includes(name)) kept.push(part)
    else values[name] ??= decoded(value.join('=')) || undefined
  }
  const rest = kept.join('&')
  return { values, rest: rest === '' ? '' : `?${rest}` }
}
