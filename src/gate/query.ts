// The part of a URL behind the question mark, of which some fields are for the gate and the rest passes as it was written.

export const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

const mostEncodings = 4

/** Byte by byte, for what is no UTF-8. */
const decodedBytes = (text: string): string =>
  text.replaceAll(/%([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))

/** The text without its percent-encodings, of which a redirect to a redirect adds one each. */
export const decodedFully = (text: string): string => {
  let plain = text
  for (let depth = 0; depth < mostEncodings && plain.includes('%'); depth++) {
    const next = plain.replaceAll(/(?:%[0-9a-f]{2})+/gi, (part) => decoded(part) ?? decodedBytes(part))
    if (next === plain) return plain
    plain = next
  }
  return plain
}

type Taken = {
  values: Record<string, string | undefined> /** With its question mark, or empty. */
  rest: string
}

/** Takes these fields out. Of one that is there twice the first counts, and none stays. */
export const takeFromQuery = (query: string, names: readonly string[]): Taken => {
  const values: Taken['values'] = {}
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
