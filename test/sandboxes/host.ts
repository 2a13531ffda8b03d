// What the host holds of the sandboxes of one server, asked of the kernel and not of Alcove.
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

/** Everything named after a sandbox, without looking into what carries its name. */
const namedAfterSandboxes = (directory: string, depth: number): string[] => {
  if (depth === 0 || !existsSync(directory)) return []
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name)
    if (sandboxId.test(entry.name)) return [path]
    return entry.isDirectory() && entry.name !== 'images' ? namedAfterSandboxes(path, depth - 1) : []
  })
}

/** Network namespaces of the server's pool that some process lives in. */
const usedNetworks = ({ instance }: DataDirectory): string[] => {
  const inUse = new Set<string>()
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      inUse.add(readlinkSync(`/proc/${pid}/ns/net`))
    } catch {
      // It ended in this moment.
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

/** One line for each thing; a line about a sandbox holds its id. */
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
