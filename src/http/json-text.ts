// Bounds a JSON text before it is parsed: a megabyte of many small values takes the parser, and everybody else who waits for
// this process, a tenth of a second.

/** More than any request of ours holds. */
export const mostValues = 10_000

/** More than any request of ours has, and less than what exhausts the stack of a program that walks it. */
export const deepest = 64

/** The index of the quote that ends the string that begins at `start`. */
const endOfString = (text: string, start: number): number => {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslash = end
    while (text[backslash - 1] === '\\') backslash -= 1
    if ((end - backslash) % 2 === 0) return end
  }
  return text.length
}

/** Says what is too much in a text; it may be no JSON at all. Only what follows a comma is counted. */
export const findTooMuch = (text: string): string | undefined => {
  // Too short for so many values. The parser is quick with short texts of any depth.
  if (text.length <= mostValues) return undefined
  let values = 0
  let depth = 0
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]
    if (character === '"') at = endOfString(text, at)
    else if (character === ',') values += 1
    else if (character === '[' || character === '{') depth += 1
    else if (character === ']' || character === '}') depth -= 1
    if (values > mostValues) return `body must not hold more than ${mostValues} values`
    if (depth > deepest) return `body must not be nested deeper than ${deepest} levels`
  }
  return undefined
}
