// Checks a JSON text before it is parsed, because parsing a megabyte of small values blocks this process for a tenth of
// a second.

/** Most values in a body. No valid request of our API has so many. */
export const mostValues = 10_000

/**
 * Deepest nesting of a body. No valid request of our API is so deep. A recursive walk over such a body still fits into
 * the stack.
 */
export const deepest = 64

/** Returns the index of the quote that ends a string. `start` is the index where the string begins. */
const endOfString = (text: string, start: number): number => {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslash = end
    while (text[backslash - 1] === '\\') backslash -= 1
    if ((end - backslash) % 2 === 0) return end
  }
  return text.length
}

/**
 * Returns why a text has too many values or levels. Returns undefined if it does not have too many. The text need not
 * be valid JSON. Values are counted by their commas.
 */
export const findTooMuch = (text: string, most: number = mostValues): string | undefined => {
  // A text this short cannot have more than `mostValues` values. The parser is fast with short texts of any depth.
  if (text.length <= mostValues) return undefined
  let values = 0
  let depth = 0
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]
    if (character === '"') at = endOfString(text, at)
    else if (character === ',') values += 1
    else if (character === '[' || character === '{') depth += 1
    else if (character === ']' || character === '}') depth -= 1
    if (values > most) return `body must not hold more than ${most} values`
    if (depth > deepest) return `body must not be nested deeper than ${deepest} levels`
  }
  return undefined
}
