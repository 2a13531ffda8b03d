// The volumes of this host: directories that several sandboxes mount, each with its users' ids (oci/ids.ts).
//
// There are two drivers. `disk`: a subvolume of this host's pool, with a limit that the kernel enforces. `directory`: a directory
// below one that the operator mounts on every host, such as CephFS or NFS; its limits are those of the operator.
import { chmod, mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from '#src/kit/log.ts'
import { GiB } from '#src/runner/cgroup/sandbox-limits.ts'
import type { AssignedVolume, VolumeAssignment, VolumeDriver } from '#src/wire/runner-link.ts'
import { hasCode } from '../cgroup/files.ts'
import { type Step, step } from '../launch.ts'
import { uidBase } from '../oci/ids.ts'
import { canShowOwners } from '../overlay/owners.ts'
import { Subvolumes } from '../overlay/subvolumes.ts'

type Volumes = readonly AssignedVolume[] | undefined

type StoreParts = {
  disks: Subvolumes
  directory: string | undefined
  launcher: string
  /** Whether sandboxes have ids of their own here. */
  mapsOwners: boolean
  /** Where `launch` mounts the volumes of a sandbox, in the order of its list. */
  mountPointOf: (at: number) => string
  log: Logger
}

type Shared = { path: string; volumes: Subvolumes; mapsOwners: boolean }

/** A volume cannot be mounted here now, for a reason that the operator can change. */
export class VolumeUnavailable extends Error {
  override readonly name = 'VolumeUnavailable'
}

/** The directory of volumes below the operator's. */
const ownName = 'alcove-volumes'

/** A directory that nobody mounted is on the host's own disk. Volumes there would be on one host only. */
const isMounted = async (path: string): Promise<boolean> => {
  const [there, root] = await Promise.all([stat(path).catch(() => undefined), stat('/')])
  return there?.isDirectory() === true && there.dev !== root.dev
}

export class VolumeStore {
  /** The driver of new volumes; undefined if the operator's directory cannot be used. */
  readonly driver: VolumeDriver | undefined
  readonly #disks: Subvolumes
  readonly #shared: Shared | undefined
  readonly #mountPointOf: StoreParts['mountPointOf']

  private constructor(
    { disks, mountPointOf }: StoreParts,
    shared: Shared | undefined,
    driver: VolumeDriver | undefined,
  ) {
    this.#disks = disks
    this.#mountPointOf = mountPointOf
    this.#shared = shared
    this.driver = driver
  }

  static async open(parts: StoreParts): Promise<VolumeStore> {
    const { directory: path, launcher, mapsOwners, mountPointOf, log } = parts
    if (path === undefined) return new VolumeStore(parts, undefined, 'disk')
    if (!(await isMounted(path))) {
      log.error({ path }, 'ALCOVE_VOLUMES_DIR is on no file system of its own: this runner mounts no new volumes')
      return new VolumeStore(parts, undefined, undefined)
    }
    const canMap = mapsOwners && (await canShowOwners(launcher, path, mountPointOf(0)))
    if (mapsOwners && !canMap)
      log.warn({ path }, 'owners cannot be mapped there: sandboxes with volumes share one range of ids (docs/adr/0004)')
    // Files in a volume may be open to every user. Only root may pass this directory, so they are not open to users of the host.
    const own = join(path, ownName)
    await mkdir(own, { mode: 0o700 }).catch(ignoreExisting)
    await chmod(own, 0o700)
    const volumes = await Subvolumes.open(launcher, own, false)
    return new VolumeStore(parts, { path, volumes, mapsOwners: canMap }, 'directory')
  }

  /** Whether a sandbox that mounts these volumes can have ids of its own. */
  canMapOwners(volumes: Volumes = []): boolean {
    return volumes.every(({ driver }) => driver === 'disk' || this.#shared?.mapsOwners === true)
  }

  /** Checks that the volumes are there. A volume that no sandbox has used yet is made. */
  async prepare(volumes: Volumes = []): Promise<void> {
    for (const { volumeId, driver, isNew } of volumes) {
      const place = await this.#placeOf(driver)
      const path = place.pathOf(volumeId)
      // The launch makes subvolumes, at no extra cost. Two hosts may make a directory at the same moment.
      if (isNew && !place.areSubvolumes) await mkdir(path, { mode: 0o700 }).catch(ignoreExisting)
      if (isNew || (await stat(path).catch(() => undefined))) continue
      throw new VolumeUnavailable(`The volume ${volumeId} is not where it was.`)
    }
  }

  /** For `disk`. Safe to repeat, and for two sandboxes at once. */
  stepsToMake(volumes: Volumes = []): Step[] {
    return volumes.flatMap(({ volumeId, driver, isNew, sizeGiB }): Step[] => {
      if (!isNew || driver !== 'disk' || !this.#disks.areSubvolumes) return []
      const path = this.#disks.pathOf(volumeId)
      return [step.subvolume(path), ...this.#disks.stepsToLimit(path, Math.round(sizeGiB * GiB))]
    })
  }

  stepsToMount(volumes: Volumes = []): Step[] {
    return volumes.map(({ volumeId, driver, subpath = '' }, at) => {
      const place = driver === 'disk' ? this.#disks : this.#shared?.volumes
      if (place === undefined) throw new VolumeUnavailable(notMounted)
      return step.volume(place.pathOf(volumeId), subpath, uidBase, this.#mountPointOf(at))
    })
  }

  /** Removes a volume that no sandbox mounts. Atomic, even if killed. No error if it does not exist. */
  async remove({ volumeId, driver }: Pick<VolumeAssignment, 'volumeId' | 'driver'>): Promise<void> {
    await (await this.#placeOf(driver)).remove(volumeId)
  }

  async #placeOf(driver: VolumeDriver): Promise<Subvolumes> {
    if (driver === 'disk') return this.#disks
    // Looked at each time, because it can be unmounted.
    if (this.#shared === undefined || !(await isMounted(this.#shared.path))) throw new VolumeUnavailable(notMounted)
    return this.#shared.volumes
  }
}

const notMounted = 'The directory of the volumes is not mounted on this host.'

const ignoreExisting = (error: unknown) => {
  if (!hasCode(error, 'EEXIST')) throw error
}
