// The description of all endpoints of the toolbox.
import { type OpenApi, openApiOf } from '#src/http/openapi.ts'
import { version } from '#src/kit/version.ts'
import { toolboxEndpoints } from './endpoints.ts'

/** Returns the description of all toolbox endpoints, as a document in the format OpenAPI 3.1. */
export const toolboxDocument = (): OpenApi =>
  openApiOf(
    {
      title: 'Alcove: toolbox',
      version,
      description:
        'Commands, files, git, terminals and language servers inside one sandbox. Generated from the server.',
      serverUrl: '/toolbox/{sandboxId}',
      serverVariables: { sandboxId: { default: 'my-sandbox', description: 'The id or the name of a sandbox.' } },
    },
    toolboxEndpoints,
  )
