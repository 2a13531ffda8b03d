// Where the directories of images' files ("trees") are stored. A plain place is a directory on any file system. A sharing place is
// on btrfs: each tree is a subvolume, and a copy takes almost no time and space.
//
// The sharing place must not be on the file system of the sandboxes' disks. A sandbox sees an overlay of a tree and a disk. Files
// in two subvolumes of one file system can have equal inode numbers. In the sandbox, `cp` would take two such files for the same
// file and refuse to copy.
import { chmod, mkdir, mkdtemp, open, rmdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { removeTree } from '#src/kit/remove-tree.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { inodesUsed, syncTree } from './files.ts'

export interface TreePlace {
  readonly directory: string
  make(path: string): Promise<void>
  /**
   * Copies a directory that `make` or `copy` has made. When the promise resolves, a power cut cannot damage the copied files. Until
   * `syncNames` is called, a power cut can still remove the whole copy.
   */
  copy(from: string, path: string): Promise<void>
  /** Removes a directory. No error if the directory does not exist. */
  remove(path: string): Promise<void>
  /** Removes a directory and waits until its space is free. This method takes longer than `remove`. */
  removeAtOnce(path: string): Promise<void>
  sync(path: string): Promise<void>
  /** Resolves when the directory entries of all trees are written to the disk. */
  syncNames(): Promise<void>
  /**
   * Returns a number that grows by one with each file made in the directory. Only the difference between two results has a
   * meaning.
   */
  filesMade(path: string): Promise<number>
}

const timeoutMs = 10 * 60_000
/** Programs of a killed runner may still write for a moment, so removing a directory may fail at first. */
const tries = 10

/** Makes a directory that only root can enter, because the owners of image files may be users of this host (oci/ids.ts). */
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

  /** Does nothing, because trees and records share a file system, which writes a tree's name before any later record. */
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
    // `btrfs subvolume delete` fails for a plain directory, and for a subvolume that contains subvolumes. `removeTree` can remove
    // both, but takes longer.
    await runCommand(['btrfs', '--quiet', 'subvolume', 'delete', '--commit-after', path], { timeoutMs }).catch(() =>
      removeTree(path, { tries }),
    )
  }

  /** Removes the files one by one and syncs. The kernel would free a deleted subvolume's space only some 30 s later. */
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

  /** Returns the inode number of a new file. btrfs does not count inodes, but gives them ascending numbers. */
  async filesMade(path: string) {
    const probe = await mkdtemp(join(path, 'probe-'))
    const { ino } = await stat(probe)
    await rmdir(probe)
    return ino
  }
}
