// Finds everything on the host that belongs to one server's sandboxes. It asks the kernel and system commands instead of the
// runner, because it checks what the runner does. Only cgroups and mounts are listed by Alcove's own code (src/up/traces.ts), which
// also asks the kernel.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { DataDirectory } from '#src/up/data-directory.ts'
import { cgroupTree, instanceCgroups, mounts, pidsIn } from '#src/up/traces.ts'

const sandboxId = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/

const sandboxCgroups = (data: DataDirectory) =>
  instanceCgroups(data)
    .flatMap(cgroupTree)
    .filter((path) => sandboxId.test(path))

const commandOf = (pid: string): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
  } catch {
    return ''
  }
}

export const findHostPid = (data: DataDirectory, commandLine: string): number | undefined => {
  const pid = sandboxCgroups(data)
    .flatMap(pidsIn)
    .find((candidate) => commandOf(candidate).includes(commandLine))
  return pid === undefined ? undefined : Number(pid)
}

/** Lists what is below `directory` and has the id of a sandbox in its name. Leaves out the contents of a listed directory. */
const namedAfterSandboxes = (directory: string, depth: number): string[] => {
  if (depth === 0 || !existsSync(directory)) return []
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name)
    if (sandboxId.test(entry.name)) return [path]
    return entry.isDirectory() && entry.name !== 'images' ? namedAfterSandboxes(path, depth - 1) : []
  })
}

/** Lists this server's network namespaces in which processes run. Namespaces without processes are ready for later sandboxes. */
const usedNetworks = ({ instance }: DataDirectory): string[] => {
  const inUse = new Set<string>()
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      inUse.add(readlinkSync(`/proc/${pid}/ns/net`))
    } catch {
      // The process has ended since `/proc` was listed, so it uses no network namespace any more.
    }
  }
  if (inUse.size === 0) return []
  return processNamespaces(instance)
    .filter(({ id }) => inUse.has(id))
    .map(({ name }) => name)
}

const processNamespaces = (instance: string) => {
  const directory = '/run/netns'
  if (!existsSync(directory)) return []
  const inodes = new Map(
    readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .map((line) => line.split(' '))
      .map((fields) => [fields[4] ?? '', fields[3] ?? '']),
  )
  return readdirSync(directory)
    .filter((name) => name.startsWith(`alcove-${instance}-`))
    .map((name) => ({ name, id: inodes.get(join(directory, name)) ?? '' }))
}

/**
 * Lists what sandboxes have left on the host, one line per finding. A line about one sandbox contains the id of that
 * sandbox.
 */
export const listSandboxTraces = (data: DataDirectory): string[] => [
  ...sandboxCgroups(data).flatMap((path) => [
    `cgroup ${path}`,
    ...pidsIn(path).map((pid) => `process ${pid} (${commandOf(pid)}) in ${path}`),
  ]),
  ...mounts(data)
    .filter((target) => sandboxId.test(target))
    .map((target) => `mount ${target}`),
  ...[data.runner, data.runtime]
    .flatMap((directory) => namedAfterSandboxes(directory, 4))
    .map((path) => `path ${path}`),
  ...usedNetworks(data).map((name) => `network namespace ${name} in use`),
]

const run = (command: string, ...args: string[]) => execFileSync(command, args, { encoding: 'utf8' })

/**
 * Lists the pool's disk limits and subvolumes, and the firewall's chains and its elements for single sandboxes. Most of these
 * things have no sandbox id in their names, so tests compare the list at their start with the list at their end.
 */
export const listUnnamedTraces = (data: DataDirectory): string[] => {
  const pool = join(data.runner, 'pool')
  const qgroups = run('btrfs', 'qgroup', 'show', pool).match(/^\d+\/\d+/gm) ?? []
  const subvolumes = run('btrfs', 'subvolume', 'list', pool).trim().split('\n').filter(Boolean)
  const rules = JSON.parse(run('nft', '-j', 'list', 'table', 'inet', `alcove_${data.instance}`)) as { nftables: Rule[] }
  const elements = rules.nftables
    .map(({ set, map }) => set ?? map)
    .flatMap((each) => (each && aboutSandboxes.includes(each.name) ? (each.elem ?? []).map(() => each.name) : []))
  const chains = rules.nftables.flatMap(({ chain }) => (chain ? [chain.name] : []))
  return [
    ...qgroups.map((id) => `qgroup ${id}`),
    ...subvolumes.map((line) => `subvolume ${line.split(' ').at(-1)}`),
    ...elements.map((name) => `firewall element of ${name}`),
    ...chains.map((name) => `firewall chain ${name}`),
  ]
}

type Elements = { name: string; elem?: unknown[] }
type Rule = { set?: Elements; map?: Elements; chain?: { name: string } }

const aboutSandboxes = ['slots', 'allowed', 'askers']
