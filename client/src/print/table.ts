// Tables for people: columns that are aligned by spaces, under a line of headings.
import { cleanLine } from '../clean.ts'

/** Returns the rows as lines of a table. The cells are cleaned for a terminal. */
export const asTable = (headings: readonly string[], rows: readonly (readonly string[])[]): string => {
  const cells = [headings, ...rows].map((row) => row.map(cleanLine))
  const widths = headings.map((_, column) =>
    cells.reduce((widest, row) => Math.max(widest, [...(row[column] ?? '')].length), 0),
  )
  const lineOf = (row: readonly string[]) =>
    row
      .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - [...cell].length))
      .join('  ')
      .trimEnd()
  return `${cells.map(lineOf).join('\n')}\n`
}
