import { answerOf, control, fetchSignedIn } from '../../../api/client.ts'
import { ApiProblem, problemOf, unreachable } from '../../../api/problem.ts'
import { type FileInfo, type ToolboxOwner, toolboxOf, toolboxUrl, unnoticed } from '../../../api/toolbox-client.ts'
import { session } from '../../../session/session.ts'
import { longestText } from './file-text.ts'
import { signedAddress } from './signed-address.ts'

const linkSeconds = 300

export type Listing = { entries: FileInfo[]; isCut: boolean }

export const listDirectory = async (owner: ToolboxOwner, path: string, signal: AbortSignal): Promise<Listing> => {
  const query = { params: { query: { path } }, headers: unnoticed, signal }
  const call = toolboxOf(owner).GET('/files', query)
  const entries = await answerOf(call)
  const { response } = await call
  return { entries, isCut: response.headers.has('x-alcove-truncated') }
}

export const homeOf = async (owner: ToolboxOwner): Promise<string> =>
  (await answerOf(toolboxOf(owner).GET('/user-home-dir', { headers: unnoticed }))).dir

/** Returns the properties of a file or directory. For a link, returns those of the link's target. */
export const describe = (owner: ToolboxOwner, path: string): Promise<FileInfo> =>
  answerOf(toolboxOf(owner).GET('/files/info', { params: { query: { path } }, headers: unnoticed }))

export const isThere = async (owner: ToolboxOwner, path: string): Promise<boolean> => {
  try {
    await describe(owner, path)
    return true
  } catch (error) {
    if (error instanceof ApiProblem && error.status === 404) return false
    throw error
  }
}

const send = async (request: Request): Promise<Response> => {
  const response = await fetchSignedIn(request).catch((cause: unknown) => {
    if (cause instanceof DOMException && cause.name === 'AbortError') throw cause
    throw unreachable()
  })
  if (!response.ok) throw problemOf(response, await response.json().catch(() => undefined))
  return response
}

/** Reads a file that was small enough to open. Returns undefined if it has grown too large meanwhile. */
export const readBytes = async (owner: ToolboxOwner, path: string, signal: AbortSignal) => {
  const url = `${toolboxUrl(owner)}/files/download?${new URLSearchParams({ path })}`
  const { body } = await send(new Request(url, { signal }))
  const pieces: Uint8Array[] = []
  let length = 0
  const reader = body!.getReader()
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    pieces.push(next.value)
    length += next.value.length
    if (length > longestText) {
      await reader.cancel()
      return undefined
    }
  }
  return new Uint8Array(await new Blob(pieces as BlobPart[]).arrayBuffer())
}

/** Replaces the whole content of a file. */
export const writeText = async (owner: ToolboxOwner, path: string, text: string): Promise<void> => {
  const url = `${toolboxUrl(owner)}/files/upload-v2?${new URLSearchParams({ path })}`
  const headers = { 'content-type': 'application/octet-stream' }
  await send(new Request(url, { method: 'POST', headers, body: new Blob([text]) }))
}

/** Makes the browser download a file of any size, without loading it into the page. */
export const download = async (owner: ToolboxOwner, path: string): Promise<void> => {
  // Throws an error if the file does not exist. Otherwise the browser would show an error page.
  await describe(owner, path)
  const key = await answerOf(
    control.GET('/sandbox/{sandboxIdOrName}/signing-key', {
      params: { path: { sandboxIdOrName: owner.id } } as never,
      parseAs: 'text',
    }),
  )
  const link = document.createElement('a')
  link.href = signedAddress(toolboxUrl(owner), key, path, Math.floor(session.now() / 1000) + linkSeconds)
  link.rel = 'noopener noreferrer'
  // A failed download shows an error page. In another tab, it does not replace unsaved text on this page.
  link.target = '_blank'
  link.click()
}

export const makeDirectory = (owner: ToolboxOwner, path: string) =>
  answerOf(toolboxOf(owner).POST('/files/folder', { params: { query: { path } } }))

export const move = (owner: ToolboxOwner, source: string, destination: string) =>
  answerOf(toolboxOf(owner).POST('/files/move', { params: { query: { source, destination } } }))

export const remove = (owner: ToolboxOwner, path: string, recursive: boolean) =>
  answerOf(toolboxOf(owner).DELETE('/files', { params: { query: { path, recursive } } }))

export const setMode = (owner: ToolboxOwner, path: string, mode: string) =>
  answerOf(toolboxOf(owner).POST('/files/permissions', { params: { query: { path, mode } } }))

export type Found = { path: string; line?: number; content?: string }

/** Finds files below a directory whose names match a glob. A text without wildcards matches anywhere in a name. */
export const searchNames = async (owner: ToolboxOwner, path: string, text: string, signal: AbortSignal) => {
  const pattern = /[*?[]/.test(text) ? text : `*${text}*`
  const query = { params: { query: { path, pattern } }, signal }
  const { files } = await answerOf(toolboxOf(owner).GET('/files/search', query))
  return files.map((file): Found => ({ path: file }))
}

/** Finds the lines that contain `text`, in all text files below a directory. */
export const searchContents = async (owner: ToolboxOwner, path: string, text: string, signal: AbortSignal) => {
  const query = { params: { query: { path, pattern: text } }, signal }
  const matches = await answerOf(toolboxOf(owner).GET('/files/find', query))
  return matches.map(({ file, line, content }): Found => ({ path: file, line, content }))
}
