// The patterns of `${name#pattern}` and the like: `*` and `?`, as in a shell. Whoever wrote them decides neither how long a
// match takes nor how much memory.

/** Called with what a match takes; throws when it is too much. */
type Spend = (steps: number) => void

/** The lengths of the beginnings of a text that a pattern matches, in order. */
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

/** Without the shortest or longest beginning that a pattern matches. */
export const withoutStart = (text: string, pattern: string, isLongest: boolean, spend: Spend): string => {
  const lengths = lengthsMatched(text, 0, pattern, spend)
  return text.slice((isLongest ? lengths.at(-1) : lengths[0]) ?? 0)
}

export const withoutEnd = (text: string, pattern: string, isLongest: boolean, spend: Spend): string =>
  reversed(withoutStart(reversed(text), reversed(pattern), isLongest, spend))

/** With something else in place of the first match, or of all. */
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
