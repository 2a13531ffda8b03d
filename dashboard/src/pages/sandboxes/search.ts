// Reads the filters and the sort order from the page's address. They are named like the query parameters of `GET /sandbox`.

const texts = [
  'id',
  'name',
  'labels',
  'lastEventAfter',
  'lastEventBefore',
  'createdAtAfter',
  'createdAtBefore',
] as const
const moreTexts = ['autoDestroyAtAfter', 'autoDestroyAtBefore'] as const
const numbers = ['minCpu', 'maxCpu', 'minMemoryGiB', 'maxMemoryGiB', 'minDiskGiB', 'maxDiskGiB'] as const
const lists = ['states', 'snapshots', 'regionIds', 'sandboxClasses'] as const
const flags = ['includeErroredDeleted', 'includeWarm', 'isPublic', 'isRecoverable'] as const

export const sorts = ['name', 'cpu', 'memoryGib', 'diskGib', 'lastActivityAt', 'createdAt'] as const
export type Sort = (typeof sorts)[number]

export type ListSearch = {
  [Name in (typeof texts)[number] | (typeof moreTexts)[number]]?: string
} & { [Name in (typeof numbers)[number]]?: number } & { [Name in (typeof lists)[number]]?: string[] } & {
  [Name in (typeof flags)[number]]?: boolean
} & { sort?: Sort; order?: 'asc' | 'desc' }

/**
 * Reads the query parameters of the address. Ignores unknown parameters and values of a wrong type, so any address shows a list.
 */
export const readListSearch = (given: Record<string, unknown>): ListSearch => {
  const search: Record<string, unknown> = {}
  for (const name of [...texts, ...moreTexts]) {
    const value = given[name]
    if (typeof value === 'string' && value !== '') search[name] = value
    // The router parses the value of `?name=12` as a number, but a name is text.
    else if (typeof value === 'number') search[name] = String(value)
  }
  if (typeof search['labels'] === 'string' && readLabels(search['labels']) === undefined) delete search['labels']
  for (const name of numbers) if (typeof given[name] === 'number') search[name] = given[name]
  for (const name of flags) if (typeof given[name] === 'boolean') search[name] = given[name]
  for (const name of lists) {
    const value = given[name]
    const items = (Array.isArray(value) ? value : [value]).filter(
      (item): item is string => typeof item === 'string' && item !== '',
    )
    if (items.length > 0) search[name] = items
  }
  if (sorts.some((sort) => sort === given['sort'])) search['sort'] = given['sort']
  if (given['order'] === 'asc' || given['order'] === 'desc') search['order'] = given['order']
  return search as ListSearch
}

/** The names of the filters that are set. */
export const activeFilters = (search: ListSearch): (keyof ListSearch)[] =>
  (Object.keys(search) as (keyof ListSearch)[]).filter((name) => name !== 'sort' && name !== 'order')

/** Reads labels as people type them, `key=value, other=value`. Undefined if the text has no label or cannot be read. */
export const readLabels = (text: string): Record<string, string> | undefined => {
  const pairs = text
    .split(',')
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '')
    .map((pair): [string, string] => {
      const at = pair.indexOf('=')
      return at < 1 ? ['', ''] : [pair.slice(0, at).trim(), pair.slice(at + 1).trim()]
    })
  return pairs.length === 0 || pairs.some(([key]) => key === '') ? undefined : Object.fromEntries(pairs)
}

/** Writes labels as text: pairs `key=value` with commas between them. */
export const labelsText = (labels: Record<string, string>): string =>
  Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(', ')
