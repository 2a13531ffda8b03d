// Computes what is on a disk if the power fails after some of the operations of recorder.ts. POSIX guarantees that a synced file
// keeps its content, and a synced directory keeps its names. Any other change may be lost.
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import type { Operation } from './recorder.ts'

type File = { bytes: Buffer; synced: Buffer; isDirectory: boolean }

/** What a power cut may do to unsynced changes. File systems differ, and the tested code must work with every file system. */
export const fates = ['all of it lost', 'names kept, contents lost', 'all of it kept'] as const
export type Fate = (typeof fates)[number]

const isBelow = (directory: string, path: string) => path === directory || path.startsWith(`${directory}/`)
const emptyFile = (): File => ({ bytes: Buffer.alloc(0), synced: Buffer.alloc(0), isDirectory: false })

const written = (before: Buffer, bytes: Buffer, at: number): Buffer => {
  const after = Buffer.alloc(Math.max(before.length, at + bytes.length))
  before.copy(after)
  bytes.copy(after, at)
  return after
}

/** A simulated disk, which begins with synced files. `see` applies one change of a `Recorder`. All paths are absolute. */
export class Disk {
  readonly #names = new Map<string, File>()
  readonly #durable = new Map<string, File>()

  constructor(files: Record<string, string> = {}) {
    for (const [path, text] of Object.entries(files)) {
      const file = { bytes: Buffer.from(text), synced: Buffer.from(text), isDirectory: false }
      for (const names of [this.#names, this.#durable]) names.set(path, file)
    }
  }

  see(operation: Operation) {
    switch (operation.kind) {
      case 'told':
        return
      case 'sync-all':
        this.#durable.clear()
        for (const [path, file] of this.#names) {
          file.synced = file.bytes
          this.#durable.set(path, file)
        }
        return
      case 'sync':
        return this.#sync(operation.path)
      case 'mkdir':
        this.#names.set(operation.path, { ...emptyFile(), isDirectory: true })
        return
      case 'remove':
        this.#names.delete(operation.path)
        return
      case 'rename':
        for (const [path, file] of [...this.#names]) {
          if (!isBelow(operation.path, path)) continue
          this.#names.delete(path)
          this.#names.set(operation.to + path.slice(operation.path.length), file)
        }
        // If a directory is renamed, the paths of the synced files in it change too.
        for (const [path, file] of [...this.#durable]) {
          if (path === operation.path || !isBelow(operation.path, path)) continue
          this.#durable.set(operation.to + path.slice(operation.path.length), file)
        }
        return
      case 'link':
        this.#names.set(operation.to, this.#file(operation.path))
        return
      case 'create':
        this.#file(operation.path)
        return
      case 'empty':
        this.#file(operation.path).bytes = Buffer.alloc(0)
        return
      case 'write': {
        const file = this.#file(operation.path)
        file.bytes = written(file.bytes, operation.bytes, operation.at ?? file.bytes.length)
        return
      }
      case 'cut': {
        const file = this.#file(operation.path)
        file.bytes = written(file.bytes, Buffer.alloc(0), operation.length).subarray(0, operation.length)
        return
      }
      case 'copy':
        this.#file(operation.to).bytes = this.#file(operation.path).bytes
    }
  }

  #file(path: string): File {
    const file = this.#names.get(path) ?? emptyFile()
    this.#names.set(path, file)
    return file
  }

  #sync(path: string) {
    const file = this.#names.get(path)
    if (file !== undefined && !file.isDirectory) {
      file.synced = file.bytes
      return
    }
    const gone = [...this.#durable.keys()].filter((name) => dirname(name) === path && !this.#names.has(name))
    for (const name of this.#durable.keys()) if (gone.some((each) => isBelow(each, name))) this.#durable.delete(name)
    for (const [name, each] of this.#names) if (dirname(name) === path) this.#durable.set(name, each)
  }

  /**
   * Returns the files below `directory` after a power cut, by relative path. `fate`: whether unsynced changes are kept. Everything
   * in a lost directory is lost.
   */
  remains(directory: string, fate: Fate): Map<string, Buffer | undefined> {
    const names = fate === 'all of it lost' ? this.#durable : this.#names
    const has = (path: string): boolean =>
      path === directory || (this.#wasThere(dirname(path)) || names.has(dirname(path)) ? has(dirname(path)) : false)
    const left = [...names].filter(([path]) => path !== directory && isBelow(directory, path) && has(path))
    return new Map(
      left.map(([path, { bytes, synced, isDirectory }]) => [
        relative(directory, path),
        isDirectory ? undefined : fate === 'all of it kept' ? bytes : synced,
      ]),
    )
  }

  /** Returns true if no recorded change made the directory `path`, so that it existed before the recording. */
  #wasThere(path: string): boolean {
    return !this.#names.has(path) && !this.#durable.has(path)
  }
}

const concerns = (operation: Operation, directory: string): boolean =>
  operation.kind === 'told' ||
  operation.kind === 'sync-all' ||
  isBelow(directory, operation.path) ||
  ('to' in operation && isBelow(directory, operation.to))

export type Cut = { told: number; fate: Fate; remains: Map<string, Buffer | undefined>; after: string }

/**
 * Returns all possible power cuts: before the first operation, and after each operation that concerns `directory`. Each cut comes
 * with every fate of unsynced changes. `told`: how many times the tested code had reported finished work before the cut.
 */
export function* cutsOf(operations: readonly Operation[], directory: string, disk = new Disk()): Generator<Cut> {
  let told = 0
  for (const [n, operation] of [undefined, ...operations].entries()) {
    if (operation !== undefined) disk.see(operation)
    if (operation !== undefined && !concerns(operation, directory)) continue
    if (operation?.kind === 'told') told += 1
    const after = `after operation ${n}: ${operation?.kind} ${operation && 'path' in operation ? operation.path : ''}`
    for (const fate of fates) yield { told, fate, remains: disk.remains(directory, fate), after: `${fate}, ${after}` }
  }
}

/** Writes the files `remains` into an empty directory, so that the tested code can read them as after a power cut. */
export const layOut = (remains: Map<string, Buffer | undefined>, directory: string): void => {
  for (const [path, bytes] of remains) {
    const place = join(directory, path)
    mkdirSync(bytes === undefined ? place : dirname(place), { recursive: true })
    if (bytes !== undefined) writeFileSync(place, bytes)
  }
}
