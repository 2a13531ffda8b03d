import { controlDocument } from '#src/control/configuration/openapi-routes.ts'
import { toolboxDocument } from '#src/toolbox/openapi.ts'
import { listEndpoints } from './list-endpoints.ts'

const print = (document: object) => `${JSON.stringify(document, null, 1)}\n`

/** Returns the text of the OpenAPI documents of control and of the toolbox, each under its file name. */
export const openApiFiles = () => ({
  'openapi.json': print(controlDocument(listEndpoints())),
  'toolbox-openapi.json': print(toolboxDocument()),
})
