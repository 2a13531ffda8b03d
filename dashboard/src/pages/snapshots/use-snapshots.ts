import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { answerOf, control } from '../../api/client.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { isMoving } from '../../ui/state-badge.tsx'
import { whileMoving } from './actions.ts'
import type { Snapshot, SnapshotPage, SnapshotSearch } from './search.ts'

const rowsPerPage = 50

/** Fetches one page of the matching snapshots, and again at intervals while one of them is being made. */
export const useSnapshots = (search: SnapshotSearch) => {
  const organizationId = useOrganizationId()
  return useQuery<SnapshotPage>({
    queryKey: [organizationId, 'snapshots', search],
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (state.data?.items.some((row) => isMoving(row.state)) ? whileMoving : false),
    queryFn: ({ signal }) =>
      answerOf(control.GET('/snapshots', { params: { query: { ...search, limit: rowsPerPage } }, signal })),
  })
}

/** Fetches one snapshot by its id or name. */
export const useSnapshot = (idOrName: string) => {
  const organizationId = useOrganizationId()
  return useQuery<Snapshot>({
    queryKey: [organizationId, 'snapshots', 'one', idOrName],
    refetchInterval: ({ state }) => (state.data !== undefined && isMoving(state.data.state) ? whileMoving : false),
    queryFn: ({ signal }) => answerOf(control.GET('/snapshots/{idOrName}', { params: { path: { idOrName } }, signal })),
  })
}
