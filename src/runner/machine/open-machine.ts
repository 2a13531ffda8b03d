// Examines the host once, at the runner's start, and makes the parts that every verb uses (machine.ts).
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
  /** `<data>/runner`. */
  directory: string
  /** Path of the program that is built from `native/launch.c`. */
  launcher: string
  /** Path of the built agent. */
  agentProgram: string
  agentAt: (socketPath: string) => AgentLink
  network: NetworkPool
  images: Images
  archiveStore: ObjectStore
  log: Logger
  /** Default: the host's resolvers that a sandbox can reach. */
  resolvers?: readonly string[]
  /** False: all sandboxes share one range of ids, as on kernels that cannot map owners. */
  mapsOwners?: boolean
  /** False: disks are plain directories without a hard size limit. */
  useBtrfs?: boolean
  /** Size of the pool's image file, if it must be created. */
  poolBytes?: number
  /** Limit for reading and for writing a sandbox's disk. 0 (default): no limit. */
  diskMebibytesPerSecond?: number
  /** False: sandboxes have no sudo. */
  offersSudo?: boolean
  /** Directory of volumes that the operator mounts on every host. Undefined: new volumes are on this host's disk. */
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
    // Make the layers with sudo beside the images, so that all layers of an overlay are on one file system.
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

/**
 * Makes root the owner of /dev/null again. Old runners let crun give the host's own /dev/null to the user of a sandbox or of the
 * resolver.
 */
const takeBackNull = async (): Promise<void> => {
  const { uid } = await stat('/dev/null')
  if (uid !== uidBase && uid !== users.resolver) return
  await chown('/dev/null', 0, 0)
  await chmod('/dev/null', 0o666)
}

/** Copies the agent to a path that contains its hash. A sandbox that runs keeps the agent that it was started with. */
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
