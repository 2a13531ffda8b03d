// Volumes in a directory that the operator mounts on every host, such as CephFS or NFS.
//
// A system call on the directory blocks forever if the file server stops answering. The runner therefore starts programs such as
// `mkdir` for each call, and kills them after a while.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CommandFailed, runCommand } from '#src/kit/run-command.ts'
import { isName } from '../overlay/subvolumes.ts'

const timeoutMs = 10_000
const removeTimeoutMs = 10 * 60_000

/** Name of Alcove's own directory inside the operator's directory. Other files there are not touched. */
const ownName = 'alcove-volumes'
const leaving = '.leaving-'

/** Thrown if a volume cannot be used on this host now, for a reason that the operator can remove. */
export class VolumeUnavailable extends Error {
  override readonly name = 'VolumeUnavailable'
}

const isBelow = (path: string, above: string) => path === above || path.startsWith(above === '/' ? '/' : `${above}/`)

/** Replaces the escape sequences that mountinfo uses for spaces and backslashes (proc_pid_mountinfo(5)). */
const withoutEscapes = (path: string) =>
  path.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))

/**
 * Whether the path is on another mount than `/`. Otherwise volumes would be on this host's disk. The kernel's list of mounts can be
 * read even if the file server does not answer.
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

  /**
   * Opens the operator's directory. Throws `VolumeUnavailable` if it is missing or not mounted, or its file server does not answer.
   */
  static async open(path: string): Promise<SharedDirectory> {
    const shared = new SharedDirectory(path)
    await shared.#checkMounted()
    if (!(await succeeds(['test', '-d', path]))) throw new VolumeUnavailable(`There is no directory ${path}.`)
    const own = join(path, ownName)
    // Files in a volume may be readable for every user. Mode 700 of Alcove's directory keeps users of the host away from these
    // files.
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

  /** Makes the directory of a volume. The directory may exist already, or another host may be making it at this moment. */
  async make(volumeId: string): Promise<void> {
    if (await this.exists(volumeId)) return
    if (await succeeds(['mkdir', '-m', '700', '--', this.pathOf(volumeId)])) return
    if (!(await this.exists(volumeId))) throw new VolumeUnavailable('The volume could not be made.')
  }

  /**
   * Removes a volume. The rename removes the whole volume at once, even if the runner is then killed. A missing volume is no error,
   * and several hosts may remove a volume at once.
   */
  async remove(volumeId: string): Promise<void> {
    const going = this.pathOf(`${leaving}${volumeId}`)
    if (await this.exists(volumeId)) await succeeds(['mv', '-T', '--', this.pathOf(volumeId), going])
    await runCommand(['rm', '-rf', '--', going], { timeoutMs: removeTimeoutMs })
    // `mv` fails if an interrupted removal has left the directory `going`. `rm` has now removed `going`, so the caller must try
    // again.
    if (await this.exists(volumeId)) throw new VolumeUnavailable('The volume could not be removed.')
  }

  /** Throws if the directory is not mounted. The operator may unmount it at any time. */
  async #checkMounted(): Promise<void> {
    if (!(await isMounted(this.#path)))
      throw new VolumeUnavailable('The directory of the volumes is not mounted on this host.')
  }
}
