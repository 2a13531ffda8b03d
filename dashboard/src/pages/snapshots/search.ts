// Reads the filters of the list of snapshots from the page's address, so that the reader can save or send the address.
import type { AnswerTo } from '../../api/client.ts'

export type SnapshotPage = AnswerTo<'/snapshots', 'get'>
export type Snapshot = SnapshotPage['items'][number]

export const sorts = ['name', 'state', 'lastUsedAt', 'createdAt'] as const
export type Sort = (typeof sorts)[number]

export type SnapshotSearch = {
  page?: number
  name?: string
  sourceSandboxId?: string
  sort?: Sort
  order?: 'asc' | 'desc'
}

const textOf = (value: unknown): string | undefined => {
  // The router parses the value of `?name=12` as a number, but a name is text.
  const text = typeof value === 'number' ? String(value) : value
  return typeof text === 'string' && text !== '' ? text : undefined
}

/**
 * Reads the query parameters of the address. Ignores unknown parameters and values of a wrong type, so any address shows a list.
 */
export const readSnapshotSearch = (given: Record<string, unknown>): SnapshotSearch => {
  const page = given['page']
  const name = textOf(given['name'])
  const sourceSandboxId = textOf(given['sourceSandboxId'])
  const sort = sorts.find((each) => each === given['sort'])
  const order = (['asc', 'desc'] as const).find((each) => each === given['order'])
  return {
    ...(typeof page === 'number' && Number.isInteger(page) && page > 1 && { page }),
    ...(name !== undefined && { name }),
    ...(sourceSandboxId !== undefined && { sourceSandboxId }),
    ...(sort !== undefined && { sort }),
    ...(order !== undefined && { order }),
  }
}

export const isFiltered = ({ name, sourceSandboxId }: SnapshotSearch): boolean =>
  name !== undefined || sourceSandboxId !== undefined
