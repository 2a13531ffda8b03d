import Type from 'typebox'
import { PathText } from '#src/http/shapes.ts'

export const OrganizationId = Type.Object({ organizationId: PathText })
