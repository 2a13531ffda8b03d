// Decides where in a sandbox a volume may be mounted, and which part of the volume.
import { Problem } from '#src/problems.ts'
import type { VolumeMount } from '#src/wire/runner-link.ts'

/**
 * Paths at which no volume may be mounted, because Alcove itself mounts something there, or because programs in every sandbox need
 * them.
 */
const reserved = ['/proc', '/sys', '/dev', '/boot', '/etc', '/bin', '/sbin', '/lib', '/lib64']

const isBelow = (path: string, above: string) => path === above || path.startsWith(`${above}/`)

/** Returns whether all parts of a path are plain names. A part such as `..` could lead out of the volume. */
const arePlain = (parts: readonly string[]) =>
  parts.every((part) => part !== '' && part !== '.' && part !== '..' && Buffer.byteLength(part) <= 255)

const checkText = (field: string, text: string) => {
  if (/\p{Cc}|\p{Cs}/u.test(text)) throw new Problem('bad_request', `${field} must not contain control characters`)
}

/** Reads a mount path. A slash at the end is accepted and removed. */
const readMountPath = (given: string): string => {
  const refuse = (why: string) => new Problem('bad_request', `volumes: mountPath ${why}`)
  checkText('volumes: mountPath', given)
  if (!given.startsWith('/')) throw refuse('must be an absolute path')
  const path = given.replace(/\/$/, '')
  if (path === '') throw refuse('must not be /')
  if (!arePlain(path.slice(1).split('/'))) throw refuse('must not have empty parts, . or ..')
  const above = reserved.find((each) => isBelow(path, each))
  if (above !== undefined) throw refuse(`must not be in ${above}`)
  return path
}

const readSubpath = (given: string): string => {
  checkText('volumes: subpath', given)
  const path = given.replace(/\/$/, '')
  if (path.startsWith('/')) throw new Problem('bad_request', 'volumes: subpath must be relative to the volume')
  if (!arePlain(path.split('/')))
    throw new Problem('bad_request', 'volumes: subpath must not have empty parts, . or ..')
  return path
}

type GivenMount = { volumeId: string; mountPath: string; subpath?: string | null | undefined }

/**
 * Checks the mounts of a new sandbox. No mount may lie inside another mount: another sandbox with the outer volume could replace
 * the inner directory by a symbolic link, and so choose where the inner volume is mounted.
 */
export const readMounts = (given: readonly GivenMount[]): VolumeMount[] => {
  const mounts = given.map(({ volumeId, mountPath, subpath }): VolumeMount => {
    if (volumeId === '') throw new Problem('bad_request', 'volumes: volumeId must not be empty')
    return {
      volumeId,
      mountPath: readMountPath(mountPath),
      ...(subpath ? { subpath: readSubpath(subpath) } : {}),
    }
  })
  for (const [at, { mountPath }] of mounts.entries())
    for (const { mountPath: other } of mounts.slice(0, at)) {
      if (mountPath === other) throw new Problem('bad_request', `volumes: two volumes have the mountPath ${mountPath}`)
      if (isBelow(mountPath, other) || isBelow(other, mountPath))
        throw new Problem('bad_request', `volumes: one mountPath must not be inside another: ${mountPath}, ${other}`)
    }
  return mounts
}
