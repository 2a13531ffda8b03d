// Describes routes in a document of OpenAPI 3.1 (https://spec.openapis.org/oas/v3.1.0). It contains the schemas of routes
// unchanged, because routes and OpenAPI both use JSON Schema 2020-12.
import type { TSchema } from 'typebox'
import type { Route } from './route.ts'

/** The parts of a route that the OpenAPI document describes. */
export type DescribedRoute = Pick<Route, 'method' | 'path' | 'summary' | 'query' | 'params' | 'body' | 'replies'> &
  Partial<Pick<Route, 'bodyOptional' | 'streamsBody'>> & { needs: string; socket?: unknown }

type Service = {
  title: string
  version: string
  description: string
  /**
   * The URL to which all paths are relative. It may be relative to the document's URL. Each `{name}` in `serverUrl` must be a key
   * of `serverVariables`.
   */
  serverUrl: string
  serverVariables?: Record<string, { default: string; description: string }>
}

export type OpenApi = { openapi: string; paths: Record<string, Record<string, unknown>> } & Record<string, unknown>

const problemSchema = {
  type: 'object',
  required: ['path', 'timestamp', 'statusCode', 'error', 'message', 'code', 'source', 'method'],
  properties: {
    path: { type: 'string' },
    timestamp: { type: 'string', format: 'date-time' },
    statusCode: { type: 'integer' },
    error: { type: 'string', description: 'The name of the status, such as `Not Found`.' },
    message: { type: 'string', description: 'What went wrong, in a sentence for people.' },
    code: {
      type: 'string',
      description: 'An error code for programs, such as `NOT_FOUND`. The meaning of a code never changes.',
    },
    source: { type: 'string' },
    method: { type: 'string' },
  },
}

const namesIn = (path: string): string[] => [...path.matchAll(/:(\w+)/g)].map(([, name]) => name as string)

const braced = (path: string): string => path.replaceAll(/:(\w+)/g, '{$1}')

/**
 * Returns an operation id that no other route of the service has: for `POST /sandbox/:id/stop` it is
 * `postSandboxIdStop`.
 */
const operationIdOf = ({ method, path }: DescribedRoute): string =>
  method.toLowerCase() +
  path
    .split(/[^a-zA-Z\d]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')

const parametersOf = ({ path, params, query }: DescribedRoute): object[] => {
  const inPath = namesIn(path).map((name) => ({
    ...{ name, in: 'path', required: true },
    schema: params?.properties[name] ?? { type: 'string' },
  }))
  const required: readonly string[] = query?.required ?? []
  const inQuery = Object.entries(query?.properties ?? {}).map(([name, schema]) => ({
    // A parameter with a default value is not required, because callers may leave it out.
    ...{ name, in: 'query', required: required.includes(name) && !('default' in schema) },
    schema,
  }))
  return [...inPath, ...inQuery]
}

/** Returns how the document describes a body. A schema without a type means that the body is bytes. */
const contentOf = (schema: TSchema & { type?: string }): object => {
  const kind =
    Object.keys(schema).length === 0
      ? 'application/octet-stream'
      : schema.type === 'string'
        ? 'text/plain'
        : 'application/json'
  return { [kind]: { schema } }
}

const bodyOf = ({ body, bodyOptional, streamsBody }: DescribedRoute): object => {
  if (streamsBody) return { requestBody: { content: { '*/*': { schema: {} } } } }
  if (body === undefined) return {}
  return { requestBody: { required: bodyOptional !== true, content: { 'application/json': { schema: body } } } }
}

const responsesOf = ({ replies }: DescribedRoute): object => ({
  ...Object.fromEntries(
    Object.entries(replies).map(([status, schema]) => [
      status,
      {
        description: status === '101' ? 'The connection becomes a WebSocket.' : 'The call succeeded.',
        ...(schema === null || status === '101' ? {} : { content: contentOf(schema) }),
      },
    ]),
  ),
  default: { $ref: '#/components/responses/Problem' },
})

const operationOf = (route: DescribedRoute): object => ({
  operationId: operationIdOf(route),
  tags: [route.path.split('/')[1] || 'service'],
  summary: route.summary,
  description: `Required access: \`${route.needs}\`.${route.socket === undefined ? '' : ' The call is a GET that is upgraded to a WebSocket.'}`,
  ...(route.needs === 'public' ? { security: [] } : {}),
  parameters: parametersOf(route),
  ...bodyOf(route),
  responses: responsesOf(route),
})

/** Returns the OpenAPI document of one program's routes. */
export const openApiOf = (
  { title, version, description, serverUrl, serverVariables }: Service,
  routes: readonly DescribedRoute[],
): OpenApi => {
  const paths: OpenApi['paths'] = {}
  for (const route of routes) {
    const path = braced(route.path)
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route) }
  }
  return {
    openapi: '3.1.0',
    info: { title, version, description },
    servers: [{ url: serverUrl, ...(serverVariables === undefined ? {} : { variables: serverVariables }) }],
    security: [{ bearer: [] }],
    paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API key, or an access token from a sign-in.' },
      },
      responses: {
        Problem: {
          description: 'The call was refused or failed.',
          content: { 'application/json': { schema: problemSchema } },
        },
      },
    },
  }
}
