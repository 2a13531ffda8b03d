// Turns labels into the rows of a form, and back.

/** A row of the form, with one label. `id` stays the same while the user edits the row. */
export type LabelRow = { id: number; key: string; value: string }

export const rowsOf = (labels: Record<string, string>): LabelRow[] =>
  Object.entries(labels).map(([key, value], id) => ({ id, key, value }))

/** Adds an empty row. */
export const addRow = (rows: readonly LabelRow[]): LabelRow[] => [
  ...rows,
  { id: Math.max(-1, ...rows.map(({ id }) => id)) + 1, key: '', value: '' },
]

/** A sentence that says why the rows cannot be saved. Undefined if they can be saved. */
export const rowsProblem = (rows: readonly LabelRow[]): string | undefined => {
  const keys = rows.map(({ key }) => key)
  if (keys.includes('')) return 'Each label needs a key. Remove the rows that you do not need.'
  const twice = keys.find((key, index) => keys.indexOf(key) < index)
  return twice === undefined ? undefined : `The key "${twice.slice(0, 60)}" is used twice.`
}

export const labelsOf = (rows: readonly LabelRow[]): Record<string, string> =>
  Object.fromEntries(rows.map(({ key, value }) => [key, value]))
