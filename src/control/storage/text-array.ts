// PostgreSQL's `text[]` in its wire format (manual §8.15.6). By default the driver queries the array types on every new
// connection, and no code awaits that query: a connection that broke at that moment ended the whole program.
// Our tables have only arrays of text.

/** The array as text, such as `{"a","b \"c\""}`. Every item is quoted, so that no item is taken for NULL or split. */
export const writeTextArray = (items: readonly string[]): string =>
  `{${items.map((item) => `"${item.replace(/["\\]/g, '\\$&')}"`).join(',')}}`

/** Reads one-dimensional arrays without NULLs, which is what our columns hold. */
export const readTextArray = (text: string): string[] =>
  [...text.slice(1, -1).matchAll(/"((?:[^"\\]|\\.)*)"|[^,"]+/gs)].map(([plain, quoted]) =>
    quoted === undefined ? plain : quoted.replace(/\\(.)/gs, '$1'),
  )
