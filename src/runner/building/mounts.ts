// Makes the mounts of one RUN line. A sandbox cannot mount anything, so the agent places the files at the target and restores the
// target after the command.
import { createHash } from 'node:crypto'
import { posix } from 'node:path'
import { AgentRefused, type Files } from '#src/toolbox/agent/agent.ts'
import { copyFiles } from '../copying/copier.ts'
import { ownDirectory, SandboxSource } from '../copying/sandbox-source.ts'
import type { CopySource } from '../copying/source.ts'
import type { CopyStep, Mount, Origin } from '../images/definition/plan.ts'
import { ImageFailed } from '../images/image-failed.ts'

type Mounting = {
  files: Files
  /** Returns the source of a mount's files. Without `origin`: the files that the caller sent with the definition. */
  sourceOf: (origin: Origin | undefined) => CopySource
  mostBytes: number
  signal: AbortSignal
}

const cachesAt = `${ownDirectory}/caches`
const asideAt = `${ownDirectory}/aside`

const isErrno = (error: unknown, ...names: string[]) => error instanceof AgentRefused && names.includes(error.errno)

/** Makes the mounts of a RUN line. Returns a function that undoes the mounts. It is needed only if the command succeeds. */
export const mount = async (mounts: readonly Mount[], mounting: Mounting): Promise<() => Promise<void>> => {
  const undos: (() => Promise<void>)[] = []
  for (const [index, each] of mounts.entries()) if (isPlaced(each)) undos.unshift(await mountOne(each, index, mounting))
  return async () => {
    for (const undo of undos) await undo()
  }
}

type Placed = Extract<Mount, { target: string }>

const isPlaced = (each: Mount): each is Placed => 'target' in each

const mountOne = async (each: Placed, index: number, mounting: Mounting): Promise<() => Promise<void>> => {
  const { files } = mounting
  const { target } = each
  const aside = `${asideAt}-${index}`
  await files.mkdir(ownDirectory, 0o755)
  const stubs = await missingAbove(files, target)
  await files.mkdir(posix.dirname(target))
  const wasThere = await moveAside(target, aside, mounting)
  const cache = each.type === 'cache' ? `${cachesAt}/${createHash('sha256').update(each.id).digest('hex')}` : ''
  if (each.type === 'cache') await openCache(each, cache, mounting)
  else if (each.type === 'tmpfs') await files.mkdir(target, 0o1777)
  else await copyTo(target, each, mounting)
  if (each.type === 'cache') await files.move(cache, target)
  return async () => {
    // Moves the files back to `cache`, where the next line with this cache mount finds them.
    if (each.type === 'cache') await files.move(target, cache).catch((error: unknown) => refuseRemoved(target, error))
    else await remove(files, target)
    if (wasThere) await files.move(aside, target)
    for (const stub of stubs) await removeEmpty(files, stub)
  }
}

const refuseRemoved = (target: string, error: unknown): never => {
  if (!isErrno(error, 'ENOENT', 'ENOTDIR')) throw error
  const why = `the command has removed ${target}, where its cache was; remove only the files in it`
  throw new ImageFailed('build-failed', why, { cause: error })
}

/** Returns the parent directories of the target that do not exist, the deepest first. */
const missingAbove = async (files: Files, target: string): Promise<string[]> => {
  const missing: string[] = []
  for (let path = posix.dirname(target); path !== '/'; path = posix.dirname(path)) {
    if ((await find(files, path)) !== undefined) break
    missing.push(path)
  }
  return missing
}

/** Moves what is at the target to `aside`. A directory of the image that cannot be renamed (EXDEV) is copied instead. */
const moveAside = async (target: string, aside: string, mounting: Mounting): Promise<boolean> => {
  const { files, signal, mostBytes } = mounting
  const there = await find(files, target)
  if (there === undefined) return false
  try {
    await files.move(target, aside)
  } catch (error) {
    if (isErrno(error, 'EBUSY'))
      throw new ImageFailed('unsupported', `nothing can be mounted at ${target}; give --mount another target`)
    if (!isErrno(error, 'EXDEV')) throw error
    const source = new SandboxSource({ files, place: 'in the image', signal })
    await copyFiles(copyOf(target, aside), { source, files, mostBytes, signal })
    await remove(files, target)
  }
  return true
}

const openCache = async (
  { mode, uid, gid, from, source }: Extract<Mount, { type: 'cache' }>,
  cache: string,
  mounting: Mounting,
): Promise<void> => {
  const { files } = mounting
  if ((await find(files, cache)) !== undefined) return
  if (from === undefined) await files.mkdir(cache, mode)
  else await copyTo(cache, { from, source }, mounting)
  await files.setPermissions(cache, { mode, owner: String(uid), group: String(gid) })
}

const copyTo = async (
  target: string,
  { from, source: path }: { from?: Origin; source: string },
  { files, sourceOf, mostBytes, signal }: Mounting,
): Promise<void> => {
  await copyFiles(copyOf(path, target), { source: sourceOf(from), files, mostBytes, signal })
}

export const copyOf = (source: string, destination: string): CopyStep['copy'] => ({
  ...{ sources: [source], documents: [], urls: [], destination, owner: '', group: '' },
  ...{ unpacks: false, excludes: [], keepsParents: false },
})

const find = (files: Files, path: string) =>
  files.stat(path).catch((error: unknown) => {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw error
  })

const remove = (files: Files, path: string) =>
  files.remove(path, { recursive: true }).catch((error: unknown) => {
    if (!isErrno(error, 'ENOENT')) throw error
  })

const removeEmpty = async (files: Files, path: string): Promise<void> => {
  if ((await find(files, path))?.type !== 'directory') return
  for await (const _ of files.list(path)) return
  await remove(files, path)
}
