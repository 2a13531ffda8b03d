import { useQuery } from '@tanstack/react-query'
import { useOrganizationId } from '../session/use-session.ts'
import { type AnswerTo, answerOf, control } from './client.ts'

export type Region = AnswerTo<'/regions', 'get'>[number]

/** The regions that the organization may use. */
export const useRegions = () => {
  const organizationId = useOrganizationId()
  return useQuery({ queryKey: [organizationId, 'regions'], queryFn: () => answerOf(control.GET('/regions')) })
}

/** Says the name of a region. An unknown one, such as one that was deleted, has its id for a name. */
export const useRegionName = (): ((id: string) => string) => {
  const { data = [] } = useRegions()
  return (id) => data.find((region) => region.id === id)?.name ?? id
}
