// Starts a sandbox on its existing disk or a new one.
//
// The order matters. A network is recorded before anything can use it. No process of a user runs before the network policy is in
// force. The journal is safe on the disk before the report. Independent steps run in parallel, because a caller waits.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { users } from '#src/kit/confined.ts'
import { settlesWithin } from '#src/kit/settles-within.ts'
import { span } from '#src/kit/telemetry/telemetry.ts'
import { GiB } from '#src/runner/cgroup/sandbox-limits.ts'
import type { Run } from '#src/runner/machine/journal.ts'
import { cgroupOf, FaultInside, type Machine, NotRecoverable, reasonOf } from '#src/runner/machine/machine.ts'
import { cgroupPathOf, shownOf, socketOf, volumePointOf } from '#src/runner/machine/places.ts'
import { findInit, type Init } from '#src/runner/machine/processes.ts'
import type { Running } from '#src/runner/machine/running.ts'
import type { Slot } from '#src/runner/network/pool.ts'
import { hostnameOf, loginPathScript, makeConfig } from '#src/runner/oci/config.ts'
import { groupLargeIds, type IdRange, idsIn, ownIds, sharedIds, uidBase } from '#src/runner/oci/ids.ts'
import { hideMounts } from '#src/runner/oci/runtime.ts'
import { sudoLayerFor, sudoPolicyOf } from '#src/runner/oci/sudo.ts'
import { overlayOptions } from '#src/runner/overlay/options.ts'
import { stepsToShow } from '#src/runner/overlay/owners.ts'
import { diskAt, leastDiskFor } from '#src/runner/overlay/pool.ts'
import { showMachine } from '#src/runner/shown/show.ts'
import type { ArchiveRef, Assignment } from '#src/wire/runner-link.ts'
import { LaunchFailed, runSteps, type Step, step } from '../launch.ts'
import type { Transfer } from './archive.ts'
import { clearSandbox } from './clear.ts'
import { startEntrypoint } from './entrypoint.ts'
import { restoreDisk } from './restore.ts'
import { placeTrust } from './trust.ts'

/** Thrown if the disk could not be restored from its archive. The archive is unchanged. */
export class RestoreFailed extends Error {
  override readonly name = 'RestoreFailed'
}

const loginPath = readFileSync(new URL('../oci/login-path.sh', import.meta.url), 'utf8')
/** PATH if neither the image nor the sandbox sets one. The agent has the same default (launch.c). */
const defaultPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Returns the sandbox's own PATH, otherwise its image's, otherwise the default. */
const ownPathOf = ({ images }: Pick<Machine, 'images'>, { env, unsetEnv = [] }: Assignment, base: string): string => {
  const inherited = unsetEnv.includes('PATH') ? undefined : images.configOf?.(base)?.env['PATH']
  return env['PATH'] ?? inherited ?? defaultPath
}

/** Returns a script for login shells that sets the sandbox's PATH, because `su -` and login servers set another PATH. */
const loginScript = (path: string): string => `_alcove_own='${path.replaceAll("'", `'\\''`)}'\n${loginPath}`

const agentAnswersWithinMs = 10_000

export const startSandbox = async (machine: Machine, assignment: Assignment, from: DiskFrom): Promise<Running> => {
  const { journal, network } = machine
  const { sandboxId } = assignment
  const isNew = assignment.isNew ?? (await journal.read(sandboxId))?.run?.pid === undefined
  await machine.volumes.prepare(assignment.volumes)
  const preparing = span('disk', {}, () => prepareDisk(machine, assignment, isNew, from))
  // Wait for an existing disk. If the disk is lost, the start must fail before `makeBundle` writes the file `run.json` without a
  // pid. Otherwise the next start would find that file, and make a new disk. Wait for a restore too. It may take minutes, and the
  // sandbox needs no network meanwhile.
  if (!isNew || from.archive?.sha256 !== undefined) await preparing
  const acquiring = span('network', {}, () => network.acquire())
  try {
    const [{ base, isMissing, isCopied }, { slot, run, bundle, ids }] = await allSettledOrThrow([
      preparing,
      makeBundle(machine, assignment, acquiring, preparing),
    ])
    const rootfs = machine.images.rootfsOf(base)
    if (rootfs === undefined) throw new Error(`The image ${base} is not on this runner.`)
    const makeDisk = isMissing ? machine.pool.stepsToMake(sandboxId, base) : []
    await allSettledOrThrow([
      span('launch', {}, () => launch(machine, assignment, { slot, bundle, base, ids }, rootfs, makeDisk)),
      span('journal', {}, () => journal.writeSpec(sandboxId, { assignment, status: 'started' })),
      span('network policy', {}, () => network.apply(slot, assignment.network, assignment.organizationId, sandboxId)),
      // A copied disk must be on the storage device before the start is reported.
      ...(isCopied ? [span('disk settles', {}, () => machine.pool.settleDisks())] : []),
    ])
    const [init] = await allSettledOrThrow([
      getInit(machine, sandboxId),
      span('agent answers', {}, () => checkAgentAnswers(machine, sandboxId)),
    ])
    await placeTrust(machine, sandboxId, assignment.authority)
    await startEntrypoint(machine, assignment)
    await journal.writeRun(sandboxId, { ...run, ...init })
    return { init, slot, isPaused: false }
  } catch (error) {
    // The error of the start is thrown even if this cleanup fails. The next start or destroy then cleans up.
    const slot = await acquiring.catch(() => undefined)
    await clearSandbox(machine, sandboxId, slot).catch((err: unknown) =>
      machine.log.error({ err, sandboxId }, 'a failed start could not be cleared away'),
    )
    throw error
  }
}

/** Source of a new disk, if the disk is not made from the image. */
export type DiskFrom = Transfer & {
  /** Makes the disk as a copy of another sandbox's disk. Returns the base image of the copy. */
  copyDisk: (() => Promise<string>) | undefined
  archive: ArchiveRef | undefined
}

type Disk = {
  /** The base image of the disk. */
  base: string
  /** The disk does not exist yet. The launch creates it as its first step, which takes no extra time. */
  isMissing: boolean
  isCopied?: boolean
}

const prepareDisk = async (
  machine: Machine,
  assignment: Assignment,
  isNew: boolean,
  { archive, copyDisk, ...transfer }: DiskFrom,
): Promise<Disk> => {
  const { pool } = machine
  const { sandboxId, image } = assignment
  if (copyDisk) return { base: await copyDisk(), isMissing: false, isCopied: true }
  const found = async () => ({
    base: (await pool.baseOf({ sandboxId })) ?? (await pool.baseOf({ template: image })) ?? image,
    isMissing: false,
  })
  if (await pool.exists(sandboxId)) return found()
  if (archive?.sha256 !== undefined) {
    try {
      await restoreDisk(machine, assignment, { id: archive.id, sha256: archive.sha256 }, transfer)
    } catch (error) {
      transfer.signal.throwIfAborted()
      throw new RestoreFailed(reasonOf(error), { cause: error })
    }
    return found()
  }
  if (!isNew) throw new NotRecoverable('The disk of the sandbox is gone.')
  const base = await pool.baseOf({ template: image })
  if (base === undefined) return { base: machine.images.newest?.(image) ?? image, isMissing: true }
  await copyTemplate(machine, assignment, base)
  return { base, isMissing: false, isCopied: true }
}

const copyTemplate = async ({ pool }: Machine, { sandboxId, image, diskGiB }: Assignment, base: string) => {
  try {
    await pool.copyDisk({ template: image }, sandboxId, base, diskGiB)
  } catch (error) {
    const leastGiB = leastDiskFor((await pool.sizeOfTemplate(image)) ?? 0) / GiB
    if (leastGiB <= diskGiB) throw error
    const said = Math.ceil(leastGiB * 1000) / 1000
    throw new NotRecoverable(`The image needs a disk of at least ${said} GiB, and this one has ${diskGiB} GiB.`, {
      cause: error,
    })
  }
}

/**
 * Waits until all promises have settled, then throws the first error. After an error the caller may undo work, so no work may still
 * be running.
 */
export const allSettledOrThrow = async <const T extends readonly Promise<unknown>[]>(promises: T) => {
  await Promise.allSettled(promises)
  return Promise.all(promises)
}

/** Writes the files that the runtime reads, and records in `run.json` which network the sandbox uses. */
const makeBundle = async (
  machine: Machine,
  assignment: Assignment,
  acquiring: Promise<Slot>,
  preparing: Promise<Disk>,
) => {
  const { journal, bootId } = machine
  const { sandboxId } = assignment
  const [bundle, slot] = await Promise.all([journal.makeDirectory(sandboxId), acquiring])
  const run: Run = { bootId, slot: slot.name }
  const choosing = preparing.then(({ base }) => idsOf(machine, assignment, slot, base))
  const makeConfigIn = async () => {
    const [{ base }, ids] = await Promise.all([preparing, choosing])
    await writeConfig(machine, assignment, { slot, bundle, base, ids })
  }
  await allSettledOrThrow([journal.writeRun(sandboxId, run), makeConfigIn()])
  return { bundle, slot, run, ids: await choosing }
}

const getInit = async (machine: Machine, sandboxId: string): Promise<Init> => {
  const init = await findInit(await cgroupOf(machine, sandboxId).pids())
  if (init === undefined) throw new Error('The sandbox ended as soon as it had started.')
  return init
}

type Bundle = { slot: Slot; bundle: string; base: string; ids: readonly IdRange[] }

const writeConfig = async (machine: Machine, assignment: Assignment, { slot, bundle, base, ids }: Bundle) => {
  const { places, limitsSwap, limitsSockets, resourceLimits, filter, maskedPaths, sudoLayers } = machine
  const { sandboxId, cpu, memoryGiB } = assignment
  const policy = sudoPolicyOf(assignment, ownPathOf(machine, assignment, base))
  const config = makeConfig({
    ...places.mountPoints,
    hostname: hostnameOf(sandboxId),
    agent: basename(machine.agentProgram),
    cpus: showMachine(machine, assignment),
    ids,
    netnsPath: slot.netnsPath,
    cgroupsPath: cgroupPathOf(places, sandboxId),
    cgroupVersion: machine.cgroups.version,
    diskSpeed: machine.diskSpeed,
    cpu,
    memoryGiB,
    limitsSwap,
    limitsSockets,
    resourceLimits,
    filter,
    maskedPaths,
    volumes: volumesOf(machine, assignment),
    sudo: sudoLayers === undefined ? undefined : policy,
  })
  await writeFile(join(bundle, 'config.json'), JSON.stringify(config), { mode: 0o600 })
}

/** The kernel's errors that a disk's or volume's content can cause, each with an explanation for the caller. */
const causedInside = {
  'Too many levels of symbolic links': 'there is a symbolic link',
  'Not a directory': 'there is something that is not a directory',
  'Disk quota exceeded': 'the volume is full',
  'No space left on device': 'the volume is full',
  'File name too long': 'the name is too long',
}

/** Returns a sentence for the caller if the content of the disk or of a volume prevents a mount. */
const sayMount = (complaint: string): string | undefined => {
  const [, step, answer = '', about] = /^(volume|mount-point): (.*) \((.*)\)$/s.exec(complaint) ?? []
  const why = causedInside[answer as keyof typeof causedInside]
  if (why === undefined) return undefined
  const where = step === 'volume' ? `of "${about}" in the subpath` : `of its mountPath ${about}`
  return `a volume could not be mounted because ${where}: ${why}.`
}

const volumesOf = ({ places }: Machine, { volumes = [] }: Assignment) =>
  volumes.map(({ mountPath }, at) => ({ from: volumePointOf(places, at), mountPath }))

/**
 * Returns the map of the sandbox's user ids to ids of the host. The result is `sharedIds` if the host or one of the sandbox's
 * volumes lacks idmapped mounts. Users that the sandbox or its image names by number are included if the map has room for them.
 */
const idsOf = (
  { mapsOwners, images, volumes: store }: Machine,
  { user, volumes }: Assignment,
  { address }: Slot,
  base: string,
): readonly IdRange[] => {
  if (!mapsOwners || !store.canMapOwners(volumes)) return sharedIds
  const ids = images.largeIdsOf?.(base) ?? []
  const users = [user, images.configOf?.(base)?.user ?? ''].flatMap(idsIn)
  return ownIds(address, groupLargeIds([...ids, ...users]) ?? groupLargeIds(ids))
}

const launch = async (
  machine: Machine,
  assignment: Assignment,
  { slot, bundle, base, ids }: Bundle,
  rootfs: string,
  makeDisk: readonly Step[],
) => {
  const { pool, places, runtime, launcher, hiddenMounts, agentProgram, sudoLayers } = machine
  const { sandboxId, diskGiB } = assignment
  const disk = pool.diskOf(sandboxId)
  const { mountPoints } = places
  const shown = diskAt(mountPoints.disk)
  const sudoLayer = sudoLayers && sudoLayerFor(sudoLayers, [disk.upper, rootfs])
  const lowers = [mountPoints.image, ...(sudoLayer === undefined ? [] : [mountPoints.sudo])]
  const steps: Step[] = [
    ...makeDisk,
    ...pool.stepsToLimit(sandboxId, diskGiB, 'with room'),
    pool.stepToSayBase(sandboxId, base),
    ...machine.volumes.stepsToMake(assignment.volumes),
    ...ownEtc(disk.etc, hostnameOf(sandboxId), machine.resolvers, loginScript(ownPathOf(machine, assignment, base))),
    step.directory(disk.etcWork, 0, 0o700),
    step.listen(socketOf(places, sandboxId), users.gate),
    ...hideMounts(hiddenMounts),
    ...stepsToShow(ids, [
      [rootfs, mountPoints.image],
      ...(sudoLayer === undefined ? [] : ([[sudoLayer, mountPoints.sudo]] as const)),
      [disk.directory, mountPoints.disk],
    ]),
    ...machine.volumes.stepsToMount(assignment.volumes),
    step.overlay(overlayOptions(lowers, shown.upper, shown.work), mountPoints.rootfs),
    ...volumesOf(machine, assignment).map(({ mountPath }) => step.mountPoint(mountPoints.rootfs, mountPath)),
    step.overlay(
      overlayOptions([shownOf(places, sandboxId), dirname(agentProgram)], shown.etc, shown.etcWork),
      mountPoints.own,
    ),
    step.sysfs(slot.netnsPath, mountPoints.sys),
    step.ownTime(),
    ...pool.stepsToLimit(sandboxId, diskGiB),
    ...runtime.stepsToRun(sandboxId, bundle),
  ]
  try {
    await runSteps(launcher, steps)
  } catch (error) {
    if (!(error instanceof LaunchFailed)) throw error
    const failed = 'The sandbox could not be started:'
    const why = sayMount(error.message)
    if (why !== undefined) throw new FaultInside(`${failed} ${why}`, { cause: error })
    throw new Error(`${failed} ${(await runtime.complaint(bundle)) ?? error.message}`, { cause: error })
  }
}

/** Returns steps that write the sandbox's own files of `/etc`, such as `hosts`, into the directory `etc` of its disk. */
const ownEtc = (etc: string, hostname: string, resolvers: readonly string[], login: string): Step[] => {
  const hosts = `127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.1.1\t${hostname}\n`
  return [
    step.newFile(join(etc, 'hostname'), uidBase, `${hostname}\n`),
    step.newFile(join(etc, 'hosts'), uidBase, hosts),
    step.newFile(join(etc, 'machine-id'), uidBase, `${randomUUID().replaceAll('-', '')}\n`),
    step.file(join(etc, loginPathScript), uidBase, login),
    // Write `resolv.conf` at each start, because the host's resolvers may have changed.
    step.file(join(etc, 'resolv.conf'), uidBase, resolvers.map((address) => `nameserver ${address}\n`).join('')),
  ]
}

/** Throws if the agent does not answer: only its answer proves that PID 1 runs. The agent's socket exists earlier. */
const checkAgentAnswers = async ({ agentAt, places }: Machine, sandboxId: string) => {
  const answer = agentAt(socketOf(places, sandboxId)).info()
  if (!(await settlesWithin(answer, agentAnswersWithinMs))) throw new Error('The agent of the sandbox does not answer.')
}
