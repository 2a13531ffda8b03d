// For tests of archives: makes and describes hostile disks, and makes directories that are removed after the test.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DiskParts } from '../tar.ts'

const script = join(import.meta.dirname, 'nasty-tree.py')
const python = (...args: string[]) =>
  execFileSync('/usr/bin/python3', [script, ...args], { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })

export const diskIn = (directory: string): DiskParts => ({
  upper: join(directory, 'upper'),
  etc: join(directory, 'etc'),
})

export const makeNastyDisk = (directory: string): DiskParts => {
  python('make', directory)
  return diskIn(directory)
}

/** Returns a line about each file of a disk. Two disks with equal lines are equal. */
export const listDisk = (directory: string): string[] => python('list', directory).trimEnd().split('\n')

/** A temporary directory. It and all mounts in it are removed at the end of the test. */
export class Scratch {
  readonly path = mkdtempSync(join(tmpdir(), 'alcove-archive-'))
  readonly #mounted: string[] = []

  at(name: string) {
    return join(this.path, name)
  }

  make(name: string) {
    const path = this.at(name)
    mkdirSync(path, { recursive: true })
    return path
  }

  /** Mounts a file system of this size, which a test can fill. */
  small(name: string, mebibytes: number) {
    const path = this.make(name)
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'alcove-test', path])
    this.#mounted.push(path)
    return path
  }

  [Symbol.dispose]() {
    for (const path of this.#mounted) execFileSync('umount', [path])
    // Use `rm`, because Node cannot remove the longest possible paths.
    execFileSync('rm', ['-rf', '--', this.path])
  }
}
