// The volumes in a directory that the operator mounts on every host, such as CephFS or NFS.
//
// The server of the directory may stop answering, and a call of ours would then wait without end. Other programs make these calls:
// they are killed after a while, and the runner goes on with everything else.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CommandFailed, runCommand } from '#src/kit/run-command.ts'
import { isName } from '../overlay/subvolumes.ts'

const timeoutMs = 10_000
const removeTimeoutMs = 10 * 60_000

/** The directory of volumes below the operator's. Other files there are left alone. */
const ownName = 'alcove-volumes'
const leaving = '.leaving-'

/** A volume cannot be mounted here now, for a reason that the operator can change. */
export class VolumeUnavailable extends Error {
  override readonly name = 'VolumeUnavailable'
}

const isBelow = (path: string, above: string) => path === above || path.startsWith(above === '/' ? '/' : `${above}/`)

/** Undoes the escapes of spaces and backslashes in mountinfo (proc_pid_mountinfo(5)). */
const withoutEscapes = (path: string) =>
  path.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))

/**
 * Whether the path is on another mount than `/`. Otherwise nobody has mounted the directory, and volumes there would be on the disk
 * of one host only. The kernel's list answers even if the directory's server does not.
 */
const isMounted = async (path: string): Promise<boolean> => {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n')
  return lines.some((line) => {
    const place = withoutEscapes(line.split(' ')[4] ?? '')
    return place !== '' && place !== '/' && isBelow(path, place)
  })
}

const succeeds = async (argv: readonly string[]): Promise<boolean> => {
  try {
    await runCommand(argv, { timeoutMs })
    return true
  } catch (error) {
    if (error instanceof CommandFailed && error.exitCode === 1) return false
    throw new VolumeUnavailable('The directory of the volumes does not answer.', { cause: error })
  }
}

export class SharedDirectory {
  readonly #path: string

  private constructor(path: string) {
    this.#path = path
  }

  /** Throws `VolumeUnavailable` if the directory is not there, is not mounted or does not answer. */
  static async open(path: string): Promise<SharedDirectory> {
    const shared = new SharedDirectory(path)
    await shared.#checkMounted()
    if (!(await succeeds(['test', '-d', path]))) throw new VolumeUnavailable(`There is no directory ${path}.`)
    const own = join(path, ownName)
    // Files in a volume may be open to every user, but no user of the host may pass this directory.
    if (!(await succeeds(['test', '-d', own]))) await succeeds(['mkdir', '--', own])
    if (!(await succeeds(['chmod', '700', '--', own]))) throw new VolumeUnavailable(`${own} cannot be made.`)
    return shared
  }

  pathOf(volumeId: string): string {
    if (!isName(volumeId)) throw new Error(`${JSON.stringify(volumeId.slice(0, 128))} is no name of a volume.`)
    return join(this.#path, ownName, volumeId)
  }

  async exists(volumeId: string): Promise<boolean> {
    await this.#checkMounted()
    return succeeds(['test', '-d', this.pathOf(volumeId)])
  }

  /** Another host may make the same volume at the same moment. */
  async make(volumeId: string): Promise<void> {
    if (await this.exists(volumeId)) return
    if (await succeeds(['mkdir', '-m', '700', '--', this.pathOf(volumeId)])) return
    if (!(await this.exists(volumeId))) throw new VolumeUnavailable('The volume could not be made.')
  }

  /** Atomic, even if killed, and if several hosts do it at once. No error if the volume does not exist. */
  async remove(volumeId: string): Promise<void> {
    const going = this.pathOf(`${leaving}${volumeId}`)
    if (await this.exists(volumeId)) await succeeds(['mv', '-T', '--', this.pathOf(volumeId), going])
    await runCommand(['rm', '-rf', '--', going], { timeoutMs: removeTimeoutMs })
    // The name of an earlier, unfinished removal may have been in the way.
    if (await this.exists(volumeId)) throw new VolumeUnavailable('The volume could not be removed.')
  }

  /** Looked at each time, because it can be unmounted. */
  async #checkMounted(): Promise<void> {
    if (!(await isMounted(this.#path)))
      throw new VolumeUnavailable('The directory of the volumes is not mounted on this host.')
  }
}
