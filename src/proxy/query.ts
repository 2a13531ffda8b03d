// The part of a URL behind the question mark, of which some fields are for the proxy and the rest passes as it was written.

export const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
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
