// Here-documents of RUN, COPY and ADD: the lines that follow an instruction and belong to it (`<<EOF`, `<<-EOF`, `<<"EOF"`).

export type HereDocument = {
  name: string
  content: string
  /** True if the delimiter is quoted: `$` then has no special meaning. */
  isQuoted: boolean
  /** The lines as they are written, with tabs and the closing delimiter, as a shell reads them after their RUN line. */
  raw: string
}

type Opening = { name: string; isQuoted: boolean; dropsTabs: boolean }

/**
 * Finds each `<<NAME` of an instruction, which opens a here-document. `<<NAME` inside quotes opens none, and neither does `<<<`.
 */
export const openingsIn = (text: string): Opening[] => {
  const openings: Opening[] = []
  // Each match is one word. White space inside quotes does not end a word.
  for (const [word] of text.matchAll(/(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+/gs)) {
    const [, dash, delimiter = ''] = /^\d*<<(-?)([^<]+)$/s.exec(word) ?? []
    if (dash === undefined) continue
    const name = delimiter.replaceAll(/["'\\]/g, '')
    if (/^[\w.-]+$/.test(name)) openings.push({ name, isQuoted: name !== delimiter, dropsTabs: dash === '-' })
  }
  return openings
}

/** Whether a RUN line consists only of `<<NAME`. The here-document is then run as a script. */
export const isOnlyDocument = (text: string): boolean => /^<<-?["']?[\w.-]+["']?$/.test(text.trim())

/**
 * Reads a here-document for each of the `openings` (`<<EOF`), from line `at` on. If a here-document has no end, returns its
 * delimiter.
 */
export const documentsAfter = (
  lines: readonly string[],
  at: number,
  openings: readonly Opening[],
): { documents: HereDocument[]; next: number } | { unclosed: string } => {
  const documents: HereDocument[] = []
  let next = at
  for (const { name, isQuoted, dropsTabs } of openings) {
    const asMeant = (line: string) => (dropsTabs ? line.replace(/^\t+/, '') : line)
    const start = next
    while (next < lines.length && asMeant(lines[next] as string) !== name) next += 1
    if (next === lines.length) return { unclosed: name }
    const own = lines.slice(start, next)
    next += 1
    const textOf = (all: readonly string[]) => all.map((line) => `${line}\n`).join('')
    documents.push({ name, isQuoted, content: textOf(own.map(asMeant)), raw: textOf(lines.slice(start, next)) })
  }
  return { documents, next }
}
