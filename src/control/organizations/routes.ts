// `/organizations`: what the caller belongs to. The guard has read it already and hides every other.
import Type from 'typebox'
import { type ControlRoute, route } from '../auth/route.ts'
import type { Parts } from '../parts.ts'
import { asOrganizationView } from './organization.ts'
import { Organization, OrganizationId } from './schemas.ts'

export const organizationRoutes = ({ clock }: Pick<Parts, 'clock'>): ControlRoute[] => [
  route({
    method: 'GET',
    path: '/organizations',
    needs: 'user',
    summary: 'The organizations that the credential reaches: of an API key, its own.',
    replies: { 200: Type.Array(Organization) },
    run: ({ caller }) => [asOrganizationView(caller.organization, clock.now())],
  }),
  route({
    method: 'GET',
    path: '/organizations/:organizationId',
    needs: 'member',
    summary: 'One organization.',
    params: OrganizationId,
    replies: { 200: Organization },
    run: ({ organization }) => asOrganizationView(organization, clock.now()),
  }),
]
