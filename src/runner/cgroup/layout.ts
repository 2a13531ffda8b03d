// Finds out which versions of cgroups this host uses (v2, v1, or both), and where they are mounted.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The cgroup v1 controllers that the runner needs to limit, measure and freeze a sandbox. */
const neededV1 = ['cpu', 'cpuacct', 'memory', 'pids', 'freezer'] as const
type V1Controller = (typeof neededV1)[number]

export type CgroupLayout =
  | { version: 2; root: string }
  | {
      version: 1
      /** Mount point of each cgroup v1 controller in `neededV1`. */
      roots: Readonly<Record<V1Controller, string>>
      /** Mount point of the cpuset controller, if it is mounted. */
      cpuset: string | undefined
      /**
       * Mount points of all v1 hierarchies, including those without a controller. The runtime makes a directory in each of them.
       */
      allRoots: readonly string[]
      /** Mount point of v2 on a host that uses v1, if v2 is mounted as well. */
      unified: string | undefined
    }

type Mount = { path: string; type: string; options: readonly string[] }

/**
 * Parses `/proc/self/mountinfo`. In each line the type, the source and the options of the file system come after a dash
 * (proc(5)).
 */
const parseMounts = (mountinfo: string): Mount[] =>
  mountinfo.split('\n').flatMap((line) => {
    const [before = '', after] = line.split(' - ')
    if (after === undefined) return []
    const [type = '', , options = ''] = after.split(' ')
    const path = (before.split(' ')[4] ?? '').replace(/\\([0-7]{3})/g, (_, octal) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    )
    return [{ path, type, options: options.split(',') }]
  })

export const parseLayout = (mountinfo: string): CgroupLayout => {
  const mounts = parseMounts(mountinfo)
  const v1 = mounts.filter((mount) => mount.type === 'cgroup')
  const v2 = mounts.find((mount) => mount.type === 'cgroup2')
  if (v1.length === 0) {
    if (v2 === undefined) throw new Error('No cgroups are mounted on this host.')
    return { version: 2, root: v2.path }
  }
  const missing: string[] = []
  const rootOf = (controller: V1Controller) => {
    const mount = v1.find(({ options }) => options.includes(controller))
    if (mount === undefined) missing.push(controller)
    return mount?.path ?? ''
  }
  const roots = {
    cpu: rootOf('cpu'),
    cpuacct: rootOf('cpuacct'),
    memory: rootOf('memory'),
    pids: rootOf('pids'),
    freezer: rootOf('freezer'),
  }
  if (missing.length > 0) throw new Error(`The host lacks the cgroup controllers ${missing.join(', ')}.`)
  const cpuset = v1.find(({ options }) => options.includes('cpuset'))?.path
  return { version: 1, roots, cpuset, allRoots: [...new Set(v1.map(({ path }) => path))], unified: v2?.path }
}

export const readLayout = (): CgroupLayout => parseLayout(readFileSync('/proc/self/mountinfo', 'utf8'))

/**
 * Returns the path of the file `cgroup.procs` of this process's own cgroup, in one hierarchy. Undefined if this process cannot
 * see that file.
 */
export const ownProcsFile = (
  layout: CgroupLayout,
  own = readFileSync('/proc/self/cgroup', 'utf8'),
): string | undefined => {
  const of = (controllers: RegExp) => controllers.exec(own)?.[1]
  const [root, path] =
    layout.version === 2
      ? [layout.root, of(/^0::(.+)$/m)]
      : [layout.roots.freezer, of(/^\d+:(?:.*,)?freezer(?:,[^:]*)?:(.+)$/m)]
  if (path === undefined) return undefined
  const file = join(root, path, 'cgroup.procs')
  return existsSync(file) ? file : undefined
}

/** Returns whether this host can restrict a sandbox to some of its processors. */
export const hasCpusets = (layout: CgroupLayout): boolean =>
  layout.version === 1
    ? layout.cpuset !== undefined
    : /\bcpuset\b/.test(readFileSync(join(layout.root, 'cgroup.controllers'), 'utf8'))

/**
 * Returns the cgroup mounts that crun must not see. If the host has cgroup v1 and v2, this is the v2 mount. If crun saw both
 * versions, it would fail.
 */
export const mountsToHide = (layout: CgroupLayout): string[] =>
  layout.version === 1 && layout.unified !== undefined ? [layout.unified] : []
