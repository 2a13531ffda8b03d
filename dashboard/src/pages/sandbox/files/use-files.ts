import { useQuery, useQueryClient } from '@tanstack/react-query'
import type { Sandbox } from '../../../api/client.ts'
import { useOrganizationId } from '../../../session/use-session.ts'
import { homeOf, listDirectory } from './file-calls.ts'

/** The entries of a directory. If `path` is undefined, the home directory of the sandbox's user is listed. */
export const useDirectory = (sandbox: Sandbox, path: string | undefined) => {
  const organizationId = useOrganizationId()
  const queries = useQueryClient()
  const isRunning = sandbox.state === 'started'
  const home = useQuery({
    queryKey: [organizationId, 'home', sandbox.id],
    queryFn: () => homeOf(sandbox),
    enabled: isRunning && path === undefined,
    staleTime: Number.POSITIVE_INFINITY,
  })
  const directory = path ?? home.data
  const query = useQuery({
    queryKey: [organizationId, 'files', sandbox.id, directory],
    queryFn: ({ signal }) => listDirectory(sandbox, directory!, signal),
    enabled: isRunning && directory !== undefined,
    staleTime: 2000,
  })
  const changed = () => queries.invalidateQueries({ queryKey: [organizationId, 'files', sandbox.id] })
  return { directory, query: home.error === null ? query : { ...query, error: home.error }, changed }
}
