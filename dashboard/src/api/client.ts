// Makes calls to Alcove's API. The types are generated from its OpenAPI description (docs/reference/openapi.json).
import createClient from 'openapi-fetch'
import { organizationHeader, session } from '../session/session.ts'
import type { paths } from './control.d.ts'
import { isOfUser } from './of-user.ts'
import { problemOf, unreachable } from './problem.ts'

export const apiUrl = new URL('/api', location.origin).href

/**
 * Makes a call with the session's credential. If the server refuses the credential, renews the session and makes the call once
 * more: the access token may have expired while the user's machine slept.
 */
export const fetchSignedIn = async (request: Request): Promise<Response> => {
  const send = async (each: Request) => {
    for (const [name, value] of Object.entries(await session.headers())) each.headers.set(name, value)
    if (isOfUser(each.url)) each.headers.delete(organizationHeader)
    return await fetch(each)
  }
  const again = request.clone()
  const response = await send(request)
  return response.status === 401 && (await session.renewRefused()) ? await send(again) : response
}

/** Makes calls to the API. Each method returns `{ data, error, response }`; the function `answerOf` is easier for most callers. */
export const control = createClient<paths>({
  baseUrl: apiUrl,
  fetch: fetchSignedIn,
  // In a URL, a list becomes a repeated query parameter (`states=a&states=b`), as the API expects.
  querySerializer: { array: { style: 'form', explode: true } },
})

type Answer<T> = { data?: T; error?: unknown; response: Response }

/** Returns the data of an answer. If the call fails, throws an {@link ApiProblem} with the server's error message. */
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
