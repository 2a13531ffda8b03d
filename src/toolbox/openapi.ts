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
        'Calls that act inside one sandbox: commands, files, Git, terminals, language servers and the desktop. Generated from the code.',
      serverUrl: '/toolbox/{sandboxId}',
      serverVariables: { sandboxId: { default: 'my-sandbox', description: 'The id or the name of a sandbox.' } },
    },
    toolboxEndpoints,
  )
