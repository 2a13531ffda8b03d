// The endpoint `/openapi.json`: a description of all endpoints of control, for people and for programs that generate
// API clients.
import Type from 'typebox'
import { openApiOf } from '#src/http/openapi.ts'
import { version } from '#src/kit/version.ts'
import { type ControlRoute, route } from '../auth/route.ts'

/** Returns the OpenAPI document of the given routes of control. */
export const controlDocument = (routes: readonly ControlRoute[]) =>
  openApiOf(
    {
      title: 'Alcove: control',
      version,
      description:
        'Manages sandboxes, snapshots, volumes and the organizations that own them. Generated from the code of the server.',
      serverUrl: '/api',
    },
    routes,
  )

export const openApiRoutes = (described: readonly ControlRoute[]): ControlRoute[] => {
  let document: ReturnType<typeof controlDocument> | undefined
  return [
    route({
      method: 'GET',
      path: '/openapi.json',
      needs: 'public',
      summary: 'Returns the OpenAPI 3.1 description of these endpoints.',
      replies: { 200: Type.Record(Type.String(), Type.Unknown()) },
      run: () => {
        document ??= controlDocument(described)
        return document
      },
    }),
  ]
}
