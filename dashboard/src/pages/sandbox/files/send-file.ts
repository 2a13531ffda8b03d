import { ApiProblem, unreachable } from '../../../api/problem.ts'
import { toolboxUrl } from '../../../api/toolbox-client.ts'
import { session } from '../../../session/session.ts'
import type { SendFile } from './uploads.ts'

const problemOf = (request: XMLHttpRequest): ApiProblem => {
  let body: Record<string, unknown> = {}
  try {
    body = JSON.parse(request.responseText) as Record<string, unknown>
  } catch {
    // The answer is not JSON, so it came from a reverse proxy. The message below is used.
  }
  const message =
    typeof body['message'] === 'string' ? body['message'] : `The server answered with status ${request.status}.`
  const requestId = request.getResponseHeader('x-request-id') ?? undefined
  return new ApiProblem(message, { status: request.status, requestId })
}

/** Makes one attempt to send the file. It uses XMLHttpRequest, because `fetch` reports no progress of an upload. */
const post = (
  url: string,
  file: File,
  headers: Record<string, string>,
  { signal, onProgress }: Parameters<SendFile>[3],
) =>
  new Promise<void>((done, fail) => {
    signal.throwIfAborted()
    const request = new XMLHttpRequest()
    request.open('POST', url)
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value)
    request.setRequestHeader('content-type', 'application/octet-stream')
    request.upload.onprogress = ({ loaded }) => onProgress(loaded)
    const abort = () => request.abort()
    signal.addEventListener('abort', abort)
    request.onloadend = () => signal.removeEventListener('abort', abort)
    request.onload = () => (request.status >= 200 && request.status < 300 ? done() : fail(problemOf(request)))
    request.onerror = () => fail(unreachable())
    request.onabort = () => fail(signal.reason)
    request.send(file)
  })

/** Sends one file. If the server answers 401, the session is renewed and the file is sent once more. */
export const sendFile: SendFile = async (owner, path, file, options) => {
  const url = `${toolboxUrl(owner)}/files/upload-v2?${new URLSearchParams({ path })}`
  try {
    await post(url, file, await session.headers(), options)
  } catch (error) {
    if (!(error instanceof ApiProblem && error.status === 401 && (await session.renewRefused()))) throw error
    await post(url, file, await session.headers(), options)
  }
}
