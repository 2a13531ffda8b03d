import { useQueryClient } from '@tanstack/react-query'
import type { Organization } from './people.ts'
import { session } from './session.ts'

/**
 * Returns a function that switches this tab to the personal organization or, if there is none, to another organization. Call it
 * after the tab's organization was left or deleted.
 */
export const useTurnAway = () => {
  const queries = useQueryClient()
  return (leftId: string): void => {
    const rest = (queries.getQueryData<Organization[]>(['organizations']) ?? []).filter(({ id }) => id !== leftId)
    queries.setQueryData(['organizations'], rest)
    const next = rest.find(({ personal }) => personal) ?? rest[0]
    if (next !== undefined) session.organizationId = next.id
    queries.removeQueries({ queryKey: [leftId] })
    void queries.invalidateQueries({ queryKey: ['organizations'] })
  }
}
