// Reads the two arguments of `alcove cp`.
import { basename, dirname } from 'node:path/posix'
import { cleanLine } from '../clean.ts'
import { exitCodes, Failure } from '../failure.ts'

/** A path in a sandbox or, if `sandbox` is undefined, on this machine. */
export type Place = { sandbox: string | undefined; path: string }

/** Reads `SANDBOX:PATH` or a local path. A local path with a colon must begin with `./` or `/`. On Windows, `X:` is a drive. */
export const readPlace = (text: string, platform: NodeJS.Platform = process.platform): Place => {
  const [, sandbox, path] = /^([^/\\:]+):(.*)$/s.exec(text) ?? []
  if (sandbox === undefined || (platform === 'win32' && sandbox.length === 1)) {
    if (text === '') throw new Failure('A path must not be empty.', exitCodes.usage)
    return { sandbox: undefined, path: text }
  }
  return { sandbox, path: path || '.' }
}

export type Copy = { direction: 'up' | 'down'; sandbox: string; remote: string; local: string }

export const readCopy = (from: string, to: string): Copy => {
  const [source, target] = [readPlace(from), readPlace(to)]
  if (source.sandbox === undefined && target.sandbox !== undefined)
    return { direction: 'up', sandbox: target.sandbox, remote: target.path, local: source.path }
  if (source.sandbox !== undefined && target.sandbox === undefined)
    return { direction: 'down', sandbox: source.sandbox, remote: source.path, local: target.path }
  throw new Failure('One path must be in a sandbox (SANDBOX:PATH), and the other on this machine.', exitCodes.usage)
}

/** The last name in a path of a sandbox. Undefined for paths without such a name: `/`, `.` and paths that end in `..`. */
export const nameOf = (path: string): string | undefined => {
  const name = basename(path)
  return name === '' || name === '.' || name === '..' ? undefined : name
}

/** Splits the path of a new file or directory into its parent directory and its name. */
export const splitTarget = (path: string): { directory: string; name: string } => {
  const name = nameOf(path)
  if (name === undefined || path.endsWith('/'))
    throw new Failure(`There is no directory ${cleanLine(path)} in the sandbox.`, exitCodes.notFound)
  return { directory: dirname(path), name }
}
