// Compiles the seccomp profile once and stores the compiled program. Otherwise crun would compile the profile at each start of a
// sandbox, and crun's part of a start would take 20 ms, not 7 ms.
//
// crun compiles a profile when it creates a container, and stores the result. The runner therefore creates a container, never
// starts it, and deletes it.
import { createHash } from 'node:crypto'
import { copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runSteps, step } from '../../launch.ts'
import { hideMounts } from '../runtime.ts'
import { makeArgumentFilter } from './arguments.ts'
import type { SeccompProfile } from './profile.ts'
import { makeFilterOf32Bits } from './programs-32.ts'

export type CompileParts = {
  launcher: string
  hiddenMounts: readonly string[]
  crunVersion: string
  /** Directory in which compiled filters are stored. */
  directory: string
}

/** Size in bytes of an instruction of a filter program (`struct sock_filter`). */
const instructionBytes = 8

const isFilter = (bytes: Buffer) => bytes.length > 0 && bytes.length % instructionBytes === 0

/** Returns the whole filter. All jumps are relative, so the three programs can be joined unchanged. */
export const compiledFilter = async (parts: CompileParts, profile: SeccompProfile): Promise<string> =>
  Buffer.concat([makeFilterOf32Bits(), makeArgumentFilter(), await compiledProfile(parts, profile)]).toString('base64')

const compiledProfile = async (parts: CompileParts, profile: SeccompProfile): Promise<Buffer> => {
  const hash = createHash('sha256')
    .update(JSON.stringify([parts.crunVersion, profile]))
    .digest('hex')
    .slice(0, 16)
  const kept = join(parts.directory, `${hash}.bpf`)
  const found = await readFile(kept).catch(() => Buffer.alloc(0))
  if (isFilter(found)) return found

  const made = await compile(parts, profile)
  if (!isFilter(made)) throw new Error('crun made no system call filter of the profile.')
  await writeFile(`${kept}.new`, made)
  await rename(`${kept}.new`, kept)
  return made
}

const compile = async ({ launcher, hiddenMounts, directory }: CompileParts, profile: SeccompProfile) => {
  const bundle = join(directory, 'compiling')
  const state = join(bundle, 'state')
  const id = 'filter'
  const crun = (...args: string[]) =>
    runSteps(launcher, [
      ...hideMounts(hiddenMounts),
      step.exec(['crun', '--root', state, '--log', join(bundle, 'log'), '--cgroup-manager', 'disabled', ...args]),
    ])
  const clear = async () => {
    await crun('delete', '--force', id).catch(() => {})
    await rm(bundle, { recursive: true, force: true })
  }

  // Remove what is left of a compilation during which the runner was killed.
  await clear()
  await mkdir(join(bundle, 'rootfs'), { recursive: true })
  try {
    // The program in the container never runs; crun only checks that it exists. Any program can therefore be copied to this path.
    await copyFile(launcher, join(bundle, 'rootfs/program'))
    await writeFile(join(bundle, 'config.json'), JSON.stringify(idleConfig(profile)))
    await crun('create', '--bundle', bundle, id)
    return await readFile(join(state, id, 'seccomp.bpf'))
  } catch (error) {
    const said = await readFile(join(bundle, 'log'), 'utf8').catch(() => '')
    throw new Error(`The system call filter could not be compiled: ${said.trim().slice(0, 500)}`, { cause: error })
  } finally {
    await clear()
  }
}

const idleConfig = (seccomp: SeccompProfile) => ({
  ociVersion: '1.0.2',
  root: { path: 'rootfs', readonly: false },
  process: { user: { uid: 0, gid: 0 }, args: ['/program'], cwd: '/', noNewPrivileges: true },
  mounts: [
    { destination: '/proc', type: 'proc', source: 'proc' },
    { destination: '/dev', type: 'tmpfs', source: 'tmpfs' },
  ],
  linux: { namespaces: [{ type: 'pid' }, { type: 'mount' }], seccomp },
})
