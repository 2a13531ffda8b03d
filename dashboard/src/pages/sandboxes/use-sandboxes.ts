import { useInfiniteQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { answerOf, control, type SandboxRow } from '../../api/client.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { type ListSearch, readLabels } from './search.ts'

const rowsPerCall = 200

/** The query parameters of `GET /sandbox` for the filters of the page. */
export const queryOf = ({ labels, ...rest }: ListSearch) => {
  const read = labels === undefined ? undefined : readLabels(labels)
  return { ...rest, ...(read !== undefined && { labels: JSON.stringify(read) }) }
}

/** The sandboxes that match the filters. More pages are fetched as the reader scrolls. */
export const useSandboxes = (search: ListSearch) => {
  const organizationId = useOrganizationId()
  const query = useInfiniteQuery({
    queryKey: [organizationId, 'sandboxes', search],
    // With structural sharing, React Query would compare all rows with the earlier result at each new page: too slow for 100,000
    // rows.
    structuralSharing: false,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      answerOf(
        control.GET('/sandbox', {
          params: {
            query: {
              ...queryOf(search),
              limit: rowsPerCall,
              ...(pageParam !== undefined && { cursor: pageParam }),
            } as never,
          },
          signal,
        }),
      ),
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
  })
  const rows = useMemo<SandboxRow[]>(() => query.data?.pages.flatMap(({ items }) => items) ?? [], [query.data])
  return { ...query, rows }
}
