// Examines the host once, when the runner starts, and makes the parts that every verb uses (machine.ts).
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { chmod, chown, copyFile, readFile, rename, stat } from 'node:fs/promises'
import { availableParallelism, totalmem } from 'node:os'
import { join } from 'node:path'
import { users } from '#src/kit/confined.ts'
import type { Logger } from '#src/kit/log.ts'
import type { ObjectStore } from '#src/runner/archive/store.ts'
import { limitsSockets, limitsSwap } from '#src/runner/cgroup/cgroup.ts'
import { CpuSpread, hostCpus } from '#src/runner/cgroup/cpus.ts'
import { findDiskSpeed } from '#src/runner/cgroup/disk-speed.ts'
import { hasCpusets, mountsToHide, readLayout } from '#src/runner/cgroup/layout.ts'
import { keepReserve } from '#src/runner/cgroup/reserve.ts'
import { GiB, resourceLimits } from '#src/runner/cgroup/sandbox-limits.ts'
import type { NetworkPool } from '#src/runner/network/pool.ts'
import { resolversForSandboxes } from '#src/runner/network/resolvers.ts'
import { uidBase } from '#src/runner/oci/ids.ts'
import { findMaskedPaths } from '#src/runner/oci/masked.ts'
import { openCrun } from '#src/runner/oci/runtime.ts'
import { compiledFilter } from '#src/runner/oci/seccomp/compile.ts'
import { makeSeccompProfile } from '#src/runner/oci/seccomp/profile.ts'
import { makeSudoLayers } from '#src/runner/oci/sudo.ts'
import { canMapOwners } from '#src/runner/overlay/owners.ts'
import { openStoragePool } from '#src/runner/overlay/pool.ts'
import { VolumeStore } from '#src/runner/volumes/volume-store.ts'
import type { RunnerCapabilities } from '#src/wire/runner-link.ts'
import { Journal } from './journal.ts'
import type { AgentLink, Images, Machine } from './machine.ts'
import { makePlaces, placesOf, volumePointOf } from './places.ts'
import { bootId } from './processes.ts'
import { giveBackSharedLimits, raiseSharedLimits } from './shared-limits.ts'

export type HostParts = {
  instance: string
  /** The runner's own directory, `<data>/runner`. */
  directory: string
  /** Path of the program that is built from `native/launch.c`. */
  launcher: string
  /** Path of the built program of the agent. */
  agentProgram: string
  agentAt: (socketPath: string) => AgentLink
  network: NetworkPool
  images: Images
  archiveStore: ObjectStore
  log: Logger
  /** DNS resolvers for sandboxes. Default: the host's resolvers, without those that a sandbox cannot reach. */
  resolvers?: readonly string[]
  /** False: all sandboxes use the same range of user ids. The value false is necessary on kernels without idmapped mounts. */
  mapsOwners?: boolean
  /** False: disks are plain directories, and no size limit is enforced. */
  useBtrfs?: boolean
  /** Size in bytes of the pool's image file. Used only when that file is created. */
  poolBytes?: number
  /**
   * Speed limit of each sandbox's disk in MiB per second, which applies to reads and to writes separately. 0 (default): no limit.
   */
  diskMebibytesPerSecond?: number
  /** False: sandboxes have no sudo. */
  offersSudo?: boolean
  /**
   * Directory for volumes, which the operator has mounted on every host. Undefined: new volumes are stored on this host's disk.
   */
  volumesDirectory?: string | undefined
}

export const openMachine = async (parts: HostParts): Promise<Machine> => {
  const { launcher, log } = parts
  const places = placesOf(parts.instance, parts.directory)
  const cgroups = readLayout()
  await Promise.all([
    makePlaces(places),
    raiseSharedLimits(log, cgroups),
    giveBackSharedLimits(log),
    takeBackNull(),
    keepReserve(cgroups, places.cgroup, log),
  ])
  const hiddenMounts = mountsToHide(cgroups)
  const runtime = await openCrun({
    launcher,
    root: places.runtimeState,
    hiddenMounts,
    mountPoint: places.mountPoints.runtime,
  })
  const [base64, pool, agentProgram, swap] = await Promise.all([
    compiledFilter(
      { launcher, hiddenMounts, crunVersion: runtime.version, directory: places.filters },
      makeSeccompProfile(),
    ),
    openStoragePool({
      directory: parts.directory,
      launcher,
      log,
      ...(parts.useBtrfs === undefined ? {} : { useBtrfs: parts.useBtrfs }),
      ...(parts.poolBytes === undefined ? {} : { imageBytes: parts.poolBytes }),
    }),
    keepAgent(parts.agentProgram, places.agents),
    limitsSwap(cgroups),
  ])
  const mapsOwners =
    parts.mapsOwners ??
    (await canMapOwners({
      launcher,
      log,
      directories: [parts.directory, pool.directory],
      mountPoints: places.mountPoints,
    }))
  const diskSpeed = await findDiskSpeed({
    layout: cgroups,
    directory: pool.directory,
    mebibytesPerSecond: parts.diskMebibytesPerSecond ?? 0,
    log,
  })
  const volumes = await VolumeStore.open({
    disks: pool.volumes,
    directory: parts.volumesDirectory,
    launcher,
    mapsOwners,
    mountPointOf: (at) => volumePointOf(places, at),
    log,
  })
  return {
    places,
    launcher,
    agentProgram,
    agentAt: parts.agentAt,
    cgroups,
    diskSpeed,
    limitsSwap: swap,
    limitsSockets: limitsSockets(cgroups),
    cpus: hasCpusets(cgroups) ? new CpuSpread(hostCpus()) : undefined,
    hostCpuinfo: readFileSync('/proc/cpuinfo', 'utf8'),
    hiddenMounts,
    mapsOwners,
    resourceLimits: resourceLimits(),
    runtime,
    filter: { kind: 'compiled', base64 },
    maskedPaths: findMaskedPaths(),
    // All lower layers of an overlay have to be on one file system, so the layers with sudo are beside the images.
    sudoLayers: parts.offersSudo === false ? undefined : await makeSudoLayers(join(parts.directory, 'sudo-layers')),
    pool,
    volumes,
    network: parts.network,
    images: parts.images,
    resolvers: parts.resolvers ?? resolversForSandboxes(),
    journal: new Journal(places.sandboxes),
    archiveStore: parts.archiveStore,
    bootId: bootId(),
    log,
  }
}

export const capabilitiesOf = ({ pool, runtime, volumes }: Machine): RunnerCapabilities => ({
  cpu: availableParallelism(),
  memoryGiB: Math.floor(totalmem() / GiB),
  diskGiB: pool.sizeGiB,
  runtime: runtime.name,
  runtimeVersion: runtime.version,
  hardDiskLimit: pool.hardDiskLimit,
  pause: 'memory',
  fork: 'disk',
  ...(volumes.driver === undefined ? {} : { volumes: volumes.driver }),
})

/** Makes root the owner of the host's /dev/null again. Old versions of the runner let crun make an unprivileged user the owner. */
const takeBackNull = async (): Promise<void> => {
  const { uid } = await stat('/dev/null')
  if (uid !== uidBase && uid !== users.resolver) return
  await chown('/dev/null', 0, 0)
  await chmod('/dev/null', 0o666)
}

/**
 * Copies the agent's program to a path that contains its hash. A running sandbox therefore keeps the program with which it was
 * started.
 */
const keepAgent = async (program: string, directory: string): Promise<string> => {
  const hash = createHash('sha256')
    .update(await readFile(program))
    .digest('hex')
    .slice(0, 16)
  const kept = join(directory, hash)
  if (await stat(kept).catch(() => undefined)) return kept
  await copyFile(program, `${kept}.new`)
  await chmod(`${kept}.new`, 0o555)
  await rename(`${kept}.new`, kept)
  return kept
}
