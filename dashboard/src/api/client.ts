// The client of control, whose types are generated from its OpenAPI description (docs/reference/openapi.json).
import createClient, { type Middleware } from 'openapi-fetch'
import { session } from '../session/session.ts'
import type { paths } from './control.d.ts'
import { problemOf, unreachable } from './problem.ts'

export const apiUrl = new URL('/api', location.origin).href

const signedIn: Middleware = {
  onRequest: async ({ request }) => {
    for (const [name, value] of Object.entries(await session.headers())) request.headers.set(name, value)
    return request
  },
  onResponse: async ({ response }) => {
    if (response.status === 401) session.expire()
    return undefined
  },
}

/** Calls to control. Each method answers `{ data, error, response }`; most callers want `answerOf`. */
export const control = createClient<paths>({
  baseUrl: apiUrl,
  // Lists are sent as repeated parameters, as the interface has it.
  querySerializer: { array: { style: 'form', explode: true } },
})
control.use(signedIn)

type Answer<T> = { data?: T; error?: unknown; response: Response }

/** Waits for a call to control and returns its data. Throws an {@link ApiProblem} with the server's sentence. */
export const answerOf = async <T>(call: Promise<Answer<T>>): Promise<T> => {
  const { data, error, response } = await call.catch((cause: unknown) => {
    if (cause instanceof DOMException && cause.name === 'AbortError') throw cause
    throw unreachable()
  })
  if (!response.ok) throw problemOf(response, error)
  return data as T
}

type SuccessOf<T> = T extends { content: { 'application/json': infer Body } } ? Body : never

/** The body of a successful answer, such as `AnswerTo<'/sandbox', 'get'>`. */
export type AnswerTo<Path extends keyof paths, Method extends keyof paths[Path]> = paths[Path][Method] extends {
  responses: infer Replies
}
  ? SuccessOf<Replies[keyof Replies & (200 | 201)]>
  : never

/** The body of a request, such as `BodyOf<'/sandbox', 'post'>`. */
export type BodyOf<Path extends keyof paths, Method extends keyof paths[Path]> = paths[Path][Method] extends {
  requestBody?: { content: { 'application/json': infer Body } }
}
  ? Body
  : never

export type SandboxRow = AnswerTo<'/sandbox', 'get'>['items'][number]
export type Sandbox = AnswerTo<'/sandbox/{sandboxIdOrName}', 'get'>
export type SandboxState = SandboxRow['state']
