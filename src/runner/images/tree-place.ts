// Where the trees of images lie. A plain place is a directory of any file system. A sharing place is a btrfs file system: there a
// tree is a subvolume, and its copy takes no time and no room.
//
// The sharing place is a file system of its own and not the pool of disks. In an overlay, files of one file system must have
// different inode numbers, and two subvolumes have the same: `cp` would take two files of a sandbox for one and refuse to copy.
import { chmod, mkdir, mkdtemp, open, rmdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { removeTree } from '#src/kit/remove-tree.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { inodesUsed, syncTree } from './files.ts'

export interface TreePlace {
  readonly directory: string
  make(path: string): Promise<void>
  /** Copies a directory that `make` or `copy` has made. The copy is on the disk when this resolves; its name may not be. */
  copy(from: string, path: string): Promise<void>
  /** Removes a directory. No error if the directory does not exist. */
  remove(path: string): Promise<void>
  /** Removes a directory and waits until its space is free, which takes longer than `remove`. */
  removeAtOnce(path: string): Promise<void>
  sync(path: string): Promise<void>
  /** Resolves when all names given so far are on the disk. */
  syncNames(): Promise<void>
  /** A number that grows by one with each file made in the directory. Only the difference between two results has a meaning. */
  filesMade(path: string): Promise<number>
}

const timeoutMs = 10 * 60_000
/** Number of attempts to remove a directory, because a program of a killed runner may still write for a moment. */
const tries = 10

/** Owners of files may be users of this host (oci/ids.ts), so only root passes through the directory. */
const openDirectory = async (directory: string) => {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await chmod(directory, 0o700)
}

export class PlainPlace implements TreePlace {
  readonly directory: string

  constructor(directory: string) {
    this.directory = directory
  }

  open() {
    return openDirectory(this.directory)
  }

  async make(path: string) {
    await mkdir(path, { mode: 0o700 })
  }

  copy(): never {
    throw new Error('Trees cannot be copied here.')
  }

  remove(path: string) {
    return removeTree(path, { tries })
  }

  removeAtOnce(path: string) {
    return this.remove(path)
  }

  async sync(path: string) {
    await syncTree(path)
  }

  /** Does nothing: names and records are on one file system, which keeps their order. */
  async syncNames() {}

  filesMade(path: string) {
    return inodesUsed(path)
  }
}

export class SharingPlace implements TreePlace {
  readonly directory: string

  constructor(directory: string) {
    this.directory = directory
  }

  open() {
    return openDirectory(this.directory)
  }

  async make(path: string) {
    await runCommand(['btrfs', '--quiet', 'subvolume', 'create', path], { timeoutMs })
    await chmod(path, 0o700)
  }

  async copy(from: string, path: string) {
    await runCommand(['btrfs', '--quiet', 'subvolume', 'snapshot', from, path], { timeoutMs })
  }

  async remove(path: string) {
    if ((await stat(path).catch(() => undefined)) === undefined) return
    // The fallback `removeTree` is slower, but it also removes plain directories, and subvolumes in subvolumes.
    await runCommand(['btrfs', '--quiet', 'subvolume', 'delete', '--commit-after', path], { timeoutMs }).catch(() =>
      removeTree(path, { tries }),
    )
  }

  /** The kernel frees a deleted subvolume some 30 s later, but files at the next sync. */
  async removeAtOnce(path: string) {
    await removeTree(path, { tries })
    await syncTree(this.directory)
  }

  async sync(path: string) {
    await syncTree(path)
  }

  async syncNames() {
    const directory = await open(this.directory)
    await directory.sync().finally(() => directory.close())
  }

  /** A subvolume gives its inodes ascending numbers. Its file system does not count them. */
  async filesMade(path: string) {
    const probe = await mkdtemp(join(path, 'probe-'))
    const { ino } = await stat(probe)
    await rmdir(probe)
    return ino
  }
}
