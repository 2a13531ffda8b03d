import { useQueryClient } from '@tanstack/react-query'
import type { Organization } from './people.ts'
import { session } from './session.ts'

/**
 * Returns a function that must be called after the organization of this tab was left or deleted. The function switches the tab to
 * the personal organization.
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
