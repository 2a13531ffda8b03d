// Where everything of one runner lies. What must outlive a reboot is in the runner's directory, the rest below /run.
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runDirectoryOf } from '#src/kit/instance.ts'

export type Places = {
  /** One directory per sandbox, with its journal and its bundle. */
  sandboxes: string
  filters: string
  agents: string
  sockets: string
  runtimeState: string
  /** Where `launch` mounts, each time in a mount namespace of its own, so one place serves all sandboxes. */
  mountPoints: { rootfs: string; etc: string; agent: string }
  /** The cgroup with one child per sandbox. */
  cgroup: string
}

export const placesOf = (instance: string, runnerDirectory: string): Places => {
  const run = runDirectoryOf(instance)
  return {
    sandboxes: join(runnerDirectory, 'sandboxes'),
    filters: join(runnerDirectory, 'filters'),
    agents: join(runnerDirectory, 'agents'),
    sockets: join(run, 's'),
    runtimeState: join(run, 'crun'),
    mountPoints: { rootfs: join(run, 'rootfs'), etc: join(run, 'etc'), agent: join(run, 'agent') },
    cgroup: `/alcove-${instance}`,
  }
}

export const makePlaces = async (places: Places): Promise<void> => {
  const { sandboxes, filters, agents, sockets, runtimeState, mountPoints } = places
  for (const directory of [sandboxes, filters, agents, sockets, runtimeState])
    await mkdir(directory, { recursive: true, mode: 0o700 })
  for (const directory of [mountPoints.rootfs, mountPoints.etc]) await mkdir(directory, { recursive: true })
  // The runtime walks here as the sandbox's root, who is nobody on the host.
  for (const directory of [join(mountPoints.rootfs, '..'), mountPoints.rootfs, mountPoints.etc])
    await chmod(directory, 0o755)
  await writeFile(mountPoints.agent, '', { flag: 'a' })
}

/** A sandbox's id becomes a file name, a cgroup and a container: what could be read as a path goes no further. */
export const checkSandboxId = (id: string): void => {
  if (!/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(id))
    throw new Error('The id of the sandbox has characters that no id has.')
}

export const socketOf = (places: Places, sandboxId: string) => join(places.sockets, `${sandboxId}.sock`)

export const cgroupPathOf = (places: Places, sandboxId: string) => `${places.cgroup}/${sandboxId}`
