import Type from 'typebox'
import { PathText } from '#src/http/shapes.ts'

/** Parameters of paths that name an organization. */
export const OrganizationId = Type.Object({ organizationId: PathText })
