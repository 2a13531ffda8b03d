// Paths of one runner's files. Files that must survive a reboot are in the runner's directory, and all other files below /run.
import { chmod, chown, mkdir, readdir, readFile, rename, rm, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { users } from '#src/kit/confined.ts'
import { agentSocketsOf, allAgentSockets, runDirectoryOf } from '#src/kit/instance.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { mostVolumes } from '#src/wire/runner-link.ts'

export type Places = {
  /** Contains a directory for each sandbox, with its journal and its OCI bundle. */
  sandboxes: string
  filters: string
  agents: string
  /** Contains the agents' sockets, one for each sandbox. Root creates the sockets, and the gate connects to them. */
  sockets: string
  /** The directory in which earlier versions of the runner created the agents' sockets. */
  formerSockets: string
  runtimeState: string
  /**
   * Contains a directory for each running sandbox. The files in that directory tell the sandbox how much memory and which
   * processors it has.
   */
  shown: string
  /**
   * Where the launcher mounts a sandbox's file systems. All starts share these paths, because each launcher has a mount namespace
   * of its own.
   */
  mountPoints: {
    image: string
    sudo: string
    disk: string
    rootfs: string
    own: string
    sys: string
    runtime: string
    volumes: string
  }
  /** The cgroup that contains a child cgroup for each sandbox. */
  cgroup: string
}

export const placesOf = (instance: string, runnerDirectory: string): Places => {
  const run = runDirectoryOf(instance)
  return {
    sandboxes: join(runnerDirectory, 'sandboxes'),
    filters: join(runnerDirectory, 'filters'),
    agents: join(runnerDirectory, 'agents'),
    sockets: agentSocketsOf(instance),
    formerSockets: join(run, 's'),
    runtimeState: join(run, 'crun'),
    shown: join(run, 'shown'),
    mountPoints: {
      image: join(run, 'image'),
      sudo: join(run, 'sudo'),
      disk: join(run, 'disk'),
      rootfs: join(run, 'rootfs'),
      own: join(run, 'own'),
      sys: join(run, 'sys'),
      runtime: join(run, 'runtime'),
      volumes: join(run, 'volumes'),
    },
    cgroup: `/alcove-${instance}`,
  }
}

export const makePlaces = async (places: Places): Promise<void> => {
  const { sandboxes, filters, agents, runtimeState, shown, mountPoints } = places
  for (const directory of [sandboxes, filters, agents, runtimeState])
    await mkdir(directory, { recursive: true, mode: 0o700 })
  await makeSockets(places)
  const { image, sudo, disk, rootfs, own, sys, runtime, volumes } = mountPoints
  for (const directory of [image, sudo, disk, rootfs, own, sys, shown]) await mkdir(directory, { recursive: true })
  for (let at = 0; at < mostVolumes; at++) await mkdir(volumePointOf(places, at), { recursive: true })
  // The runtime enters these directories as root of the sandbox, which is an unprivileged user of the host. All users may therefore
  // read these directories.
  for (const directory of [join(rootfs, '..'), rootfs, own, sys, shown, volumes]) await chmod(directory, 0o755)
  await writeFile(runtime, '', { flag: 'a' })
  await keepInMemory(shown)
}

/**
 * Makes the directories of the agents' sockets. The gate may connect to the sockets but neither list nor change them. Moves sockets
 * of running sandboxes from the directory that earlier versions used.
 */
const makeSockets = async ({ sockets, formerSockets }: Pick<Places, 'sockets' | 'formerSockets'>): Promise<void> => {
  await mkdir(allAgentSockets, { recursive: true, mode: 0o711 })
  await mkdir(sockets, { recursive: true, mode: 0o710 })
  await chown(sockets, 0, users.gate)
  await chmod(sockets, 0o710)
  for (const name of await readdir(formerSockets).catch(() => [])) {
    const path = join(formerSockets, name)
    await chown(path, 0, users.gate)
    await chmod(path, 0o660)
    await rename(path, join(sockets, name))
  }
  await rm(formerSockets, { recursive: true, force: true })
}

/** The type that statfs(2) returns for a tmpfs. */
const tmpfsMagic = 0x01021994

/** Mounts a tmpfs at the directory if `/run` is on a disk, because the files in the directory are written often. */
const keepInMemory = async (directory: string): Promise<void> => {
  if ((await statfs(directory)).type === tmpfsMagic) return
  const options = 'mode=755,size=256m,nosuid,nodev,noexec'
  await runCommand(['mount', '-t', 'tmpfs', '-o', options, 'tmpfs', directory], { timeoutMs: 10_000 })
}

/** For tests: unmounts the tmpfs of `keepInMemory`. The command `purge` finds that tmpfs by itself. */
export const unmountMemory = async ({ shown }: Pick<Places, 'shown'>): Promise<void> => {
  const mounts = await readFile('/proc/self/mountinfo', 'utf8')
  if (mounts.includes(` ${shown} `)) await runCommand(['umount', shown], { timeoutMs: 10_000 })
}

/** Throws if an id has characters that names of files, cgroups and containers must not have, such as a slash. */
export const checkSandboxId = (id: string): void => {
  if (!/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(id))
    throw new Error('The id of the sandbox is too long or has characters that are not allowed.')
}

export const socketOf = (places: Places, sandboxId: string) => join(places.sockets, `${sandboxId}.sock`)

export const shownOf = (places: Places, sandboxId: string) => join(places.shown, sandboxId)

/**
 * Returns where the launcher mounts volume number `at` of a sandbox. The runtime bind-mounts the volume from this path into the
 * sandbox.
 */
export const volumePointOf = ({ mountPoints }: Pick<Places, 'mountPoints'>, at: number) =>
  join(mountPoints.volumes, String(at))

export const cgroupPathOf = (places: Places, sandboxId: string) => `${places.cgroup}/${sandboxId}`
