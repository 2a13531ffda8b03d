// The command `alcove sandbox list`.
import type { Api, Query } from '../api.ts'
import { printRows } from '../print/print.ts'
import { readPairs } from './create.ts'
import type { Sandbox } from './sandbox.ts'

type Page = { items: Sandbox[]; nextCursor: string | null }

const pageSize = '200'

/**
 * Maximum number of pages of a list, enough for 10 million sandboxes. Without a limit, a faulty server could send pages forever.
 */
const mostPages = 50_000

const ageOf = (time: string | undefined): string => {
  const seconds = Math.max(0, (Date.now() - Date.parse(time ?? '')) / 1000)
  if (Number.isNaN(seconds)) return '-'
  if (seconds < 120) return `${Math.floor(seconds)} s`
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} d`
}

export const labelsOf = ({ labels }: Sandbox): string =>
  Object.entries(labels ?? {})
    .map(([name, value]) => `${name}=${value}`)
    .join(',')

export type ListOptions = { json?: boolean; state?: string[]; label?: string[]; name?: string }

/** Fetches all pages of the list, and returns all sandboxes. */
export const findSandboxes = async (api: Api, options: ListOptions = {}): Promise<Sandbox[]> => {
  const items: Sandbox[] = []
  let cursor: string | undefined
  for (let page = 0; page < mostPages; page += 1) {
    const query: Query = {
      limit: pageSize,
      cursor,
      name: options.name,
      states: options.state?.join(','),
      labels: options.label && JSON.stringify(readPairs(options.label)),
    }
    const answer: Page = await api.askPage<Page>('/sandbox', query)
    for (const item of answer.items) items.push(item)
    if (!answer.nextCursor) break
    cursor = answer.nextCursor
  }
  return items
}

export const listSandboxes = async (api: Api, options: ListOptions): Promise<void> => {
  const items = await findSandboxes(api, options)
  const rows = items.map((item) => [
    item.id,
    item.name,
    item.state,
    `${item.cpu} cpu`,
    `${item.memory} GiB`,
    ageOf(item.createdAt),
    item.snapshot ?? '-',
    labelsOf(item) || '-',
  ])
  await printRows(options, items, ['ID', 'NAME', 'STATE', 'CPU', 'MEMORY', 'AGE', 'SNAPSHOT', 'LABELS'], rows)
}
