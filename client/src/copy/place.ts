// Reads what the two arguments of `alcove cp` mean.
import { basename, dirname } from 'node:path/posix'
import { cleanLine } from '../clean.ts'
import { exitCodes, Failure } from '../failure.ts'

/** A path of a sandbox, or of this machine where `sandbox` is undefined. */
export type Place = { sandbox: string | undefined; path: string }

/**
 * Reads `SANDBOX:PATH` or a local path. A local path with a colon begins with `./` or `/`. A drive of Windows is no
 * sandbox.
 */
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
  throw new Failure('One of the two must be of a sandbox, as SANDBOX:PATH, and the other a path here.', exitCodes.usage)
}

/** The last name of a path of a sandbox. Undefined for `/`, `.` and paths that end in `..`, which have none. */
export const nameOf = (path: string): string | undefined => {
  const name = basename(path)
  return name === '' || name === '.' || name === '..' ? undefined : name
}

/** Splits a path that is to be made into the directory and the new name. */
export const splitTarget = (path: string): { directory: string; name: string } => {
  const name = nameOf(path)
  if (name === undefined || path.endsWith('/'))
    throw new Failure(`There is no directory ${cleanLine(path)} in the sandbox.`, exitCodes.notFound)
  return { directory: dirname(path), name }
}
