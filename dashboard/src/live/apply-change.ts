import type { AnswerTo, SandboxRow } from '../api/client.ts'

/** The pages of a list of sandboxes, as TanStack Query keeps them. */
export type ListPages = { pages: AnswerTo<'/sandbox', 'get'>[]; pageParams: unknown[] }

/** Replaces the rows that have changed. Pages without a changed row stay the same objects, so that they are not drawn. */
export const applyChange = (list: ListPages, rows: readonly SandboxRow[]): ListPages => {
  const byId = new Map(rows.map((row) => [row.id, row]))
  const pages = list.pages.map((page) =>
    page.items.some(({ id }) => byId.has(id))
      ? { ...page, items: page.items.map((item) => ({ ...item, ...byId.get(item.id) })) }
      : page,
  )
  return { ...list, pages }
}
