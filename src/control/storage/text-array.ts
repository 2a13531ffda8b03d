// PostgreSQL's `text[]` as it stands on the wire (manual §8.15.6). The driver would ask the server for its array types on
// every new connection, in a question that nobody waits for: when the connection broke just then, its error ended the whole
// program. Our tables have arrays of text and no others.

/** `{"a","b \"c\""}`: every item quoted, so that none is taken for NULL or split. */
export const writeTextArray = (items: readonly string[]): string =>
  `{${items.map((item) => `"${item.replace(/["\\]/g, '\\$&')}"`).join(',')}}`

/** Reads one-dimensional arrays without NULLs, which is what our columns hold. */
export const readTextArray = (text: string): string[] =>
  [...text.slice(1, -1).matchAll(/"((?:[^"\\]|\\.)*)"|[^,"]+/gs)].map(([plain, quoted]) =>
    quoted === undefined ? plain : quoted.replace(/\\(.)/gs, '$1'),
  )
