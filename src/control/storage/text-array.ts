// PostgreSQL's `text[]` in its text format (manual §8.15.6). By default the driver queries the array types on every new
// connection. No code awaits that query, so a connection that broke at that moment ended the whole program. Our tables
// have only arrays of text, so the query is not needed.

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
