// For tests of archives: hostile disks, descriptions of disks, and directories that are removed after the test.
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

/** Describes each file in a line. Two disks are equal if their lines are equal. */
export const listDisk = (directory: string): string[] => python('list', directory).trimEnd().split('\n')

/** A directory, and mounts in it, that are removed at the end of the test. */
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

  /** Mounts a small file system that is soon full. */
  small(name: string, mebibytes: number) {
    const path = this.make(name)
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'alcove-test', path])
    this.#mounted.push(path)
    return path
  }

  [Symbol.dispose]() {
    for (const path of this.#mounted) execFileSync('umount', [path])
    // Node cannot remove the longest possible paths.
    execFileSync('rm', ['-rf', '--', this.path])
  }
}
