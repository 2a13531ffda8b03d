import type { AnswerTo, SandboxRow } from '../api/client.ts'

/** The pages of a list of sandboxes, in the form in which TanStack Query caches them. */
export type ListPages = { pages: AnswerTo<'/sandbox', 'get'>[]; pageParams: unknown[] }

/**
 * Updates the rows of changed sandboxes, and removes the rows of deleted sandboxes. With `takesAll`, a changed sandbox without
 * a row gets a row at the start of the list. Set `takesAll` only for a list without filters, with the most recently active
 * sandbox first.
 * Unchanged pages stay the same objects, so React does not draw them again.
 */
export const applyChange = (list: ListPages, rows: readonly SandboxRow[], takesAll: boolean): ListPages => {
  const changed = new Map(rows.map((row) => [row.id, row]))
  const known = new Set(list.pages.flatMap(({ items }) => items.map(({ id }) => id)))
  const added = takesAll ? rows.filter(({ id, state }) => !known.has(id) && state !== 'destroyed') : []
  const pages = list.pages.map((page, index) => {
    const isFirstWithNew = index === 0 && added.length > 0
    if (!isFirstWithNew && !page.items.some(({ id }) => changed.has(id))) return page
    const items = page.items
      .map((item) => ({ ...item, ...changed.get(item.id) }))
      .filter(({ state }) => state !== 'destroyed')
    return { ...page, items: isFirstWithNew ? [...added, ...items] : items }
  })
  return { ...list, pages }
}

/** Whether the list has a row for each of these sandboxes. */
export const hasAll = (list: ListPages, rows: readonly SandboxRow[]): boolean =>
  rows.every((row) => list.pages.some(({ items }) => items.some(({ id }) => id === row.id)))

/** Updates the rows of changed sandboxes in a list without pages, and removes the rows of deleted sandboxes. Adds no row. */
export const replaceRows = <Row extends Pick<SandboxRow, 'id'>>(list: Row[], rows: readonly SandboxRow[]): Row[] => {
  const changed = new Map(rows.map((row) => [row.id, row]))
  if (!list.some(({ id }) => changed.has(id))) return list
  return list.flatMap((item) => {
    const row = changed.get(item.id)
    if (row === undefined) return [item]
    return row.state === 'destroyed' ? [] : [{ ...item, ...row }]
  })
}
