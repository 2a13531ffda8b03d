// Shell patterns (`*` and `?`), for `${name#pattern}` and others. Callers write the patterns, so time and memory of a match are
// limited.

/** Called with the number of steps of a match. Throws when the steps of all matches together exceed their limit. */
type Spend = (steps: number) => void

/** Returns the lengths of all matches of the pattern that begin at offset `from`, the shortest first. */
const lengthsMatched = (text: string, from: number, pattern: string, spend: Spend): number[] => {
  const found: number[] = []
  let places = new Set([0])
  for (let at = from; ; at++) {
    for (const place of places) if (pattern[place] === '*') places.add(place + 1)
    if (places.has(pattern.length)) found.push(at - from)
    if (at >= text.length || places.size === 0) return found
    spend(places.size)
    const next = new Set<number>()
    for (const place of places) {
      const wanted = pattern[place]
      if (wanted === '*') next.add(place)
      else if (wanted === '?' || wanted === text[at]) next.add(place + 1)
    }
    places = next
  }
}

const reversed = (text: string) => [...text].reverse().join('')

/**
 * Returns the text without the prefix that the pattern matches: the longest such prefix with `isLongest`, otherwise the
 * shortest.
 */
export const withoutStart = (text: string, pattern: string, isLongest: boolean, spend: Spend): string => {
  const lengths = lengthsMatched(text, 0, pattern, spend)
  return text.slice((isLongest ? lengths.at(-1) : lengths[0]) ?? 0)
}

export const withoutEnd = (text: string, pattern: string, isLongest: boolean, spend: Spend): string =>
  reversed(withoutStart(reversed(text), reversed(pattern), isLongest, spend))

/** Returns the text in which `by` replaces the first match or, with `isAll`, all matches. */
export const replaced = (text: string, pattern: string, by: string, isAll: boolean, spend: Spend): string => {
  let result = ''
  for (let at = 0; at < text.length; ) {
    const length = lengthsMatched(text, at, pattern, spend).at(-1) ?? 0
    if (length === 0) {
      result += text[at]
      at += 1
      continue
    }
    result += by
    at += length
    if (!isAll) return result + text.slice(at)
  }
  return result
}
