// The volumes on this host: directories that several sandboxes can mount. In each sandbox, the files belong to the sandbox's own
// users (oci/ids.ts).
//
// Driver `disk`: a subvolume of this host's pool, with a size limit. Driver `directory`: in a directory that the operator mounts on
// every host, such as CephFS or NFS. Only the operator limits such a volume's size.
import { mkdir, stat } from 'node:fs/promises'
import type { Logger } from '#src/kit/log.ts'
import { GiB } from '#src/runner/cgroup/sandbox-limits.ts'
import type { AssignedVolume, VolumeAssignment, VolumeDriver } from '#src/wire/runner-link.ts'
import { hasCode } from '../cgroup/files.ts'
import { type Step, step } from '../launch.ts'
import { uidBase } from '../oci/ids.ts'
import { canShowOwners } from '../overlay/owners.ts'
import type { Subvolumes } from '../overlay/subvolumes.ts'
import { SharedDirectory, VolumeUnavailable } from './shared-directory.ts'

type Volumes = readonly AssignedVolume[] | undefined

type StoreParts = {
  disks: Subvolumes
  directory: string | undefined
  launcher: string
  /** Whether each sandbox on this host has its own range of user ids. */
  mapsOwners: boolean
  /** Returns the path where the launcher mounts the volume at position `at` of the sandbox's list of volumes. */
  mountPointOf: (at: number) => string
  log: Logger
}

/**
 * The operator's directory for volumes. `mapsOwners`: whether the directory supports idmapped mounts. If not, all sandboxes with
 * volumes in the directory share one range of user ids.
 */
type Opened = { shared: SharedDirectory; mapsOwners: boolean }

export class VolumeStore {
  /** The driver of new volumes; undefined if the operator's directory cannot be used. */
  readonly driver: VolumeDriver | undefined
  readonly #disks: Subvolumes
  readonly #opened: Opened | undefined
  readonly #mountPointOf: StoreParts['mountPointOf']

  private constructor(
    { disks, mountPointOf }: StoreParts,
    opened: Opened | undefined,
    driver: VolumeDriver | undefined,
  ) {
    this.#disks = disks
    this.#mountPointOf = mountPointOf
    this.#opened = opened
    this.driver = driver
  }

  static async open(parts: StoreParts): Promise<VolumeStore> {
    const { directory: path, launcher, mapsOwners, mountPointOf, log } = parts
    if (path === undefined) return new VolumeStore(parts, undefined, 'disk')
    try {
      const shared = await SharedDirectory.open(path)
      const canMap = mapsOwners && (await canShowOwners(launcher, path, mountPointOf(0)))
      if (mapsOwners && !canMap)
        log.warn({ path }, 'owners cannot be mapped there: sandboxes with volumes share ids (docs/adr/0004)')
      return new VolumeStore(parts, { shared, mapsOwners: canMap }, 'directory')
    } catch (error) {
      if (!(error instanceof VolumeUnavailable)) throw error
      log.error({ err: error, path }, 'ALCOVE_VOLUMES_DIR cannot be used: this runner mounts no new volumes')
      return new VolumeStore(parts, undefined, undefined)
    }
  }

  /** Whether a sandbox that mounts these volumes can have its own range of user ids. */
  canMapOwners(volumes: Volumes = []): boolean {
    return volumes.every(({ driver }) => driver === 'disk' || this.#opened?.mapsOwners === true)
  }

  /** Makes each volume that has `isNew`. Throws if a volume without `isNew` does not exist on this host. */
  async prepare(volumes: Volumes = []): Promise<void> {
    for (const { volumeId, driver, isNew } of volumes) {
      if (isNew) await this.#prepareNew(volumeId, driver)
      else if (!(await this.#exists(volumeId, driver)))
        throw new VolumeUnavailable(`The files of the volume ${volumeId} are missing on this host.`)
    }
  }

  async #prepareNew(volumeId: string, driver: VolumeDriver): Promise<void> {
    if (driver === 'directory') return this.#getShared().make(volumeId)
    // Only for a pool without btrfs. With btrfs, the launcher makes the volume as a subvolume (`stepsToMake`).
    if (!this.#disks.areSubvolumes)
      await mkdir(this.#disks.pathOf(volumeId), { mode: 0o700 }).catch((error: unknown) => {
        if (!hasCode(error, 'EEXIST')) throw error
      })
  }

  async #exists(volumeId: string, driver: VolumeDriver): Promise<boolean> {
    if (driver === 'directory') return this.#getShared().exists(volumeId)
    return (await stat(this.#disks.pathOf(volumeId)).catch(() => undefined)) !== undefined
  }

  /**
   * Returns the launcher's steps for new volumes of the driver `disk`. The steps may run repeatedly, even in two launchers at once.
   */
  stepsToMake(volumes: Volumes = []): Step[] {
    return volumes.flatMap(({ volumeId, driver, isNew, sizeGiB }): Step[] => {
      if (!isNew || driver !== 'disk' || !this.#disks.areSubvolumes) return []
      const path = this.#disks.pathOf(volumeId)
      return [step.subvolume(path), ...this.#disks.stepsToLimit(path, Math.round(sizeGiB * GiB))]
    })
  }

  stepsToMount(volumes: Volumes = []): Step[] {
    return volumes.map(({ volumeId, driver, subpath = '' }, at) => {
      const place = driver === 'disk' ? this.#disks : this.#getShared()
      return step.volume(place.pathOf(volumeId), subpath, uidBase, this.#mountPointOf(at))
    })
  }

  /**
   * Removes an unmounted volume. If the runner is killed meanwhile, the volume is complete or gone. A missing volume is no error.
   */
  async remove({ volumeId, driver }: Pick<VolumeAssignment, 'volumeId' | 'driver'>): Promise<void> {
    await (driver === 'disk' ? this.#disks : this.#getShared()).remove(volumeId)
  }

  #getShared(): SharedDirectory {
    if (this.#opened === undefined)
      throw new VolumeUnavailable('The directory of the volumes was not mounted when this runner started.')
    return this.#opened.shared
  }
}
