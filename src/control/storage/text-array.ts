// Reads and writes PostgreSQL's type `text[]` in its text format (manual §8.15.6). The driver's own support is off, because that
// support queries all array types on every new connection, and an error of that query could end the program. Our tables have only
// arrays of text.

/**
 * Writes an array as text, for example `{"a","b \"c\""}`. Every item is quoted, so that no item is read as NULL or
 * split.
 */
export const writeTextArray = (items: readonly string[]): string =>
  `{${items.map((item) => `"${item.replace(/["\\]/g, '\\$&')}"`).join(',')}}`

/** Reads one-dimensional arrays without NULLs. Our columns contain no other arrays. */
export const readTextArray = (text: string): string[] =>
  [...text.slice(1, -1).matchAll(/"((?:[^"\\]|\\.)*)"|[^,"]+/gs)].map(([plain, quoted]) =>
    quoted === undefined ? plain : quoted.replace(/\\(.)/gs, '$1'),
  )
