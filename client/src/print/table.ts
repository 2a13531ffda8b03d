// Prints tables: a line of headings, and columns that are aligned with spaces.
import { cleanLine } from '../clean.ts'

/**
 * Returns the rows as the text of a table. Cells that are not texts are converted, and unsafe characters are shown as
 * escapes.
 */
export const asTable = (headings: readonly string[], rows: readonly (readonly string[])[]): string => {
  const cells = [headings, ...rows].map((row) => row.map((cell) => cleanLine(String(cell))))
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
