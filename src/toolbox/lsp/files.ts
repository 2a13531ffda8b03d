// Resolves the paths of files. The SDK writes `file://` and the plain path. Other clients encode special characters, such as `%20`
// for a space.
import { posix } from 'node:path'
import { pathToFileURL } from 'node:url'
import { readWhole } from '#src/kit/read-whole.ts'
import { Problem } from '#src/problems.ts'
import type { Files } from '../agent/agent.ts'
import { aboutPath, isErrno, told } from '../files/failures.ts'

/** Maximum size in bytes of a file that is opened in a language server. */
const fileBytes = 2 * 1024 * 1024

const exists = async (files: Files, path: string): Promise<boolean> => {
  try {
    await files.stat(path)
    return true
  } catch (error) {
    if (isErrno(error, 'ENOENT') || isErrno(error, 'ENOTDIR')) return false
    throw error
  }
}

const decoded = (path: string): string => {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/** Returns the absolute path. A relative path starts at the working directory, as in file calls. */
export const absolute = async (files: Files, path: string): Promise<string> =>
  posix.resolve(path.startsWith('/') ? '/' : await told(() => files.directory(), { path }), path)

/**
 * Resolves a relative path from the working directory, or from the project if the file exists only there. The SDK's documentation
 * names both directories.
 */
const fromProject = async (files: Files, path: string, project: string): Promise<string> => {
  const here = await absolute(files, path)
  const inProject = posix.resolve(project, path)
  if (here === inProject || (await told(() => exists(files, here), { path: here }))) return here
  return (await told(() => exists(files, inProject), { path: inProject })) ? inProject : here
}

/** Returns the absolute path of a `file://` URI. `%` is a plain character if a file with that literal path exists. */
export const pathOf = async (files: Files, uri: string, project: string): Promise<string> => {
  const rest = uri.startsWith('file://') ? uri.slice('file://'.length) : ''
  if (rest === '') throw new Problem('bad_request', 'uri must be file:// and the path of a file.')
  const path = rest.startsWith('/') ? posix.resolve(rest) : await fromProject(files, rest, project)
  const isLiteral = !path.includes('%') || (await told(() => exists(files, path), { path }))
  if (isLiteral) return path
  const found = decoded(path)
  if (found.includes('\0')) throw new Problem('bad_request', 'uri must not contain a NUL.')
  return found
}

export const uriOf = (path: string): string => pathToFileURL(path).href

export const readText = (files: Files, path: string): Promise<string> =>
  told(
    async () => {
      const tooLarge = () =>
        aboutPath('unprocessable', path, `A language server opens files of up to ${fileBytes} bytes.`)
      const { size, stream } = await files.read(path, { length: fileBytes + 1 })
      if (size > fileBytes) {
        stream.destroy()
        throw tooLarge()
      }
      return (await readWhole(stream, fileBytes, tooLarge)).toString()
    },
    { path },
  )
