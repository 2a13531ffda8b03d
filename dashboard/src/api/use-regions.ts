import { useQuery } from '@tanstack/react-query'
import { useOrganizationId } from '../session/use-session.ts'
import { type AnswerTo, answerOf, control } from './client.ts'

export type Region = AnswerTo<'/regions', 'get'>[number]

/** The regions that the organization may use. */
export const useRegions = () => {
  const organizationId = useOrganizationId()
  return useQuery({ queryKey: [organizationId, 'regions'], queryFn: () => answerOf(control.GET('/regions')) })
}

/** Returns a function that turns a region's id into its name. An unknown region, such as a deleted one, is named by its id. */
export const useRegionName = (): ((id: string) => string) => {
  const { data = [] } = useRegions()
  return (id) => data.find((region) => region.id === id)?.name ?? id
}
