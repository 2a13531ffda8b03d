// Probes the features of the kernel that isolate sandboxes. Namespaces that a probe makes end with the probe. A probe removes the
// cgroup that it makes.

import { mkdir, readFile, rmdir, statfs, writeFile } from 'node:fs/promises'
import { runCommand } from '#src/kit/run-command.ts'
import { diskIds, moreRunningIds, runningIds } from '#src/kit/sandbox-ids.ts'
import { asRoot, type Finding, type Probe, reasonOf } from './finding.ts'

const userNamespaces: Probe = {
  name: 'user namespaces',
  run: async () => {
    const name = 'user namespaces'
    try {
      const inside = (await runCommand(['unshare', '--user', '--map-root-user', 'id', '-u'])).trim()
      if (inside === '0') return { name, status: 'ok', found: 'work' }
      return { name, status: 'missing', found: `root inside is uid ${inside}`, costs: 'sandboxes cannot start' }
    } catch (error) {
      return {
        name,
        status: 'missing',
        found: reasonOf(error),
        costs: 'sandboxes cannot start: root inside would be root outside',
        remedy: 'sysctl user.max_user_namespaces=15000; kernel.unprivileged_userns_clone=1 where that exists',
      }
    }
  },
}

const overlay = asRoot('overlay', async ({ scratch }) => {
  const name = 'overlay'
  const script =
    'mount -t tmpfs tmpfs "$0"; cd "$0"; mkdir lower upper work merged; echo below > lower/file; ' +
    'mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged; ' +
    'cat merged/file; echo above > merged/file; cat lower/file upper/file'
  try {
    const said = await runCommand(['unshare', '--mount', '--propagation', 'private', 'sh', '-ec', script, scratch])
    if (said === 'below\nbelow\nabove\n')
      return { name, status: 'ok', found: 'mounts, and writes stay in the upper layer' }
    return { name, status: 'missing', found: `unexpected content: ${said.trim()}`, costs: 'sandboxes cannot start' }
  } catch (error) {
    return {
      name,
      status: 'missing',
      found: reasonOf(error),
      costs: 'sandboxes cannot start',
      remedy: 'modprobe overlay',
    }
  }
})

const seccomp: Probe = {
  name: 'system call filter',
  run: async () => {
    const name = 'system call filter'
    const actions = await readFile('/proc/sys/kernel/seccomp/actions_avail', 'utf8').catch(() => '')
    if (/\berrno\b/.test(actions)) return { name, status: 'ok', found: 'seccomp' }
    return {
      name,
      status: 'missing',
      found: 'no seccomp in this kernel',
      costs: 'sandboxes cannot start',
      remedy: 'CONFIG_SECCOMP_FILTER',
    }
  },
}

const cgroupDir = '/sys/fs/cgroup'
const cgroup2Magic = 0x63677270
const wanted = ['cpu', 'memory', 'pids'] as const

type CgroupMode = { mode: 'v2' | 'hybrid' | 'v1' | 'none'; controllers: string[] }

/** Finds out which cgroup versions are mounted. `mountinfo` is the text of /proc/self/mountinfo. */
export const cgroupModeIn = (mountinfo: string, v2Controllers: string): CgroupMode => {
  const mounts = mountinfo.split('\n').map((line) => {
    const [before = '', after = ''] = line.split(' - ')
    return { path: before.split(' ')[4] ?? '', type: after.split(' ')[0] ?? '', options: after.split(' ')[2] ?? '' }
  })
  const v1 = mounts.filter(({ type }) => type === 'cgroup')
  const hasV2 = mounts.some(({ type }) => type === 'cgroup2')
  const known = [...wanted, 'cpuset', 'freezer', 'devices', 'blkio']
  const controllers = v1.flatMap(({ options }) => options.split(',').filter((option) => known.includes(option)))
  const unified = v2Controllers.split(/\s+/).filter((name) => name !== '')
  if (v1.length > 0) return { mode: hasV2 ? 'hybrid' : 'v1', controllers: [...new Set([...controllers, ...unified])] }
  return hasV2 ? { mode: 'v2', controllers: unified } : { mode: 'none', controllers: [] }
}

/** Makes a cgroup, sets a limit in it, and removes the cgroup. */
const writeLimit = async (mode: CgroupMode['mode']) => {
  const name = `alcove-doctor-${process.pid}`
  const [parent, file] = mode === 'v2' ? [cgroupDir, 'pids.max'] : [`${cgroupDir}/pids`, 'pids.max']
  await mkdir(`${parent}/${name}`)
  try {
    await writeFile(`${parent}/${name}/${file}`, '64')
    const written = (await readFile(`${parent}/${name}/${file}`, 'utf8')).trim()
    if (written !== '64') throw new Error(`${file} says ${written}`)
  } finally {
    await rmdir(`${parent}/${name}`)
  }
}

const cgroups = asRoot('cgroups', async (): Promise<Finding> => {
  const name = 'cgroups'
  const isUnified = (await statfs(cgroupDir)).type === cgroup2Magic
  const controllersFile = isUnified ? `${cgroupDir}/cgroup.controllers` : `${cgroupDir}/unified/cgroup.controllers`
  const v2Controllers = await readFile(controllersFile, 'utf8').catch(() => '')
  const { mode, controllers } = cgroupModeIn(await readFile('/proc/self/mountinfo', 'utf8'), v2Controllers)
  const found = `${mode}, controllers ${controllers.join(' ') || 'none'}`
  const lacking = wanted.filter((controller) => !controllers.includes(controller))
  if (lacking.length > 0) {
    return {
      name,
      status: 'missing',
      found,
      costs: `no limits for ${lacking.join(', ')}`,
      remedy: `enable ${lacking.join(', ')} on the kernel command line`,
    }
  }
  try {
    await writeLimit(mode)
  } catch (error) {
    return {
      name,
      status: 'missing',
      found: `${found}; a limit could not be set: ${reasonOf(error)}`,
      costs: 'no limits',
    }
  }
  if (mode === 'v2') return { name, status: 'ok', found }
  return { name, status: 'ok', found, costs: 'starts are some milliseconds slower than with v2' }
})

/** Returns the lines of /etc/subuid that assign ids which Alcove uses for sandboxes. */
export const linesWithOurIds = (text: string): string[] => {
  const ranges = [
    diskIds,
    { first: runningIds.first, count: runningIds.ranges * diskIds.count },
    { first: moreRunningIds.first, count: moreRunningIds.ranges * moreRunningIds.count },
  ]
  return text.split('\n').filter((line) => {
    const [name, first = '', count = ''] = line.split(':')
    const [from, many] = [Number(first), Number(count)]
    return (
      name !== 'alcove' && many > 0 && ranges.some((ours) => from < ours.first + ours.count && from + many > ours.first)
    )
  })
}

const ids: Probe = {
  name: 'ids',
  run: async (): Promise<Finding> => {
    const read = (file: string) => readFile(file, 'utf8').catch(() => '')
    const texts = await Promise.all(['/etc/subuid', '/etc/subgid'].map(read))
    const found = [...new Set(texts.flatMap(linesWithOurIds))]
    if (found.length === 0) return { name: 'ids', status: 'ok', found: 'no other user has the user ids of sandboxes' }
    return {
      name: 'ids',
      status: 'warn',
      found: `in /etc/subuid or /etc/subgid: ${found.slice(0, 3).join(' ')}`,
      costs:
        'containers of these users have user ids of sandboxes, so they may read files of sandboxes and signal their processes',
      remedy:
        'give these users other ids with usermod --del-subuids and --add-subuids (and --del-subgids, --add-subgids)',
    }
  },
}

export const isolationProbes: readonly Probe[] = [userNamespaces, ids, overlay, seccomp, cgroups]
