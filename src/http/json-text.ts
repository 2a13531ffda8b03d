// Checks the size of a JSON text before it is parsed. Parsing a megabyte of small values would block this process for 0.1 s.

/** Maximum number of values in a JSON body. Every valid request of our API has fewer. */
export const mostValues = 10_000

/** Maximum depth of a JSON body, at which recursive code does not exceed the stack. Every valid request is less deep. */
export const deepest = 64

/** Returns the index of the quote at the end of a string. `start`: the index of the quote at its beginning. */
const endOfString = (text: string, start: number): number => {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslash = end
    while (text[backslash - 1] === '\\') backslash -= 1
    if ((end - backslash) % 2 === 0) return end
  }
  return text.length
}

/**
 * Returns a sentence if a text has too many values, estimated from the commas, or is nested too deep. The text may be
 * invalid JSON.
 */
export const findTooMuch = (text: string, most: number = mostValues): string | undefined => {
  // A text of at most `mostValues` characters has at most as many values, and is parsed fast, however deep it is.
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
