// For tests: a `Library` of images and a registry on loopback, both new for each test.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import type { ImageSource } from '#src/wire/runner-link.ts'
import { needsRoot } from '#test/needs-root.ts'
import { ImageFailed, type ImageFailure } from '../image-failed.ts'
import { unmountImagePool } from '../image-pool.ts'
import { type BringRequest, Library } from '../library.ts'
import { type ImageLimits, standardLimits } from '../limits.ts'
import { type TarEntry, tarOf } from './oci-image.ts'
import { TestRegistry } from './registry.ts'

const isThere = (command: string) => existsSync(`/usr/bin/${command}`)
export const cannotRun = needsRoot || (['skopeo', 'umoci', 'crun'].every(isThere) ? false : 'needs skopeo, umoci, crun')

export const publicNetwork = () => Promise.reject(new Error('nothing here is on the Internet'))
export const file = (path: string, content = path, more: Partial<TarEntry> = {}): TarEntry => ({
  path,
  content,
  ...more,
})
export const layer = (...entries: TarEntry[]) => tarOf(entries)
export const noise = (bytes: number) => randomBytes(bytes).toString('latin1')

const limits: ImageLimits = { ...standardLimits, keepFreeBytes: 0, answerTimeoutMs: 30_000, timeoutMs: 120_000 }

class LibraryRoom {
  directory = ''
  registry!: TestRegistry

  readonly parts = (more: Partial<ImageLimits> = {}) => ({
    poolDir: join(this.directory, 'pool'),
    filesDir: join(this.directory, 'in'),
    registries: { plainRegistries: [this.registry.host], authFile: undefined, publicNetwork },
    limits: { ...limits, ...more },
  })
  /**
   * Opens a `Library` (library.ts). `mirrors`: mirrors of the test registry. An image `x` of the registry is `hub/x` in a mirror.
   */
  readonly open = (
    more: Partial<ImageLimits> = {},
    mirrors: readonly TestRegistry[] = [],
    isAllowed?: 'not allowed',
  ) => {
    const parts = this.parts(more)
    const plainRegistries = [...parts.registries.plainRegistries, ...(isAllowed ? [] : mirrors.map(({ host }) => host))]
    const registries = {
      ...{ ...parts.registries, plainRegistries },
      mirrors: mirrors.map(({ host }) => ({ registry: this.registry.host, location: `${host}/hub` })),
    }
    return new Library({ ...parts, registries, log: silentLog() })
  }
  /** Opens a `Library` that makes a btrfs file system on which images share layers. */
  readonly openSharing = () => new Library({ ...this.parts(), sharesLayers: true, log: silentLog() })
  readonly from = (reference: string): ImageSource => ({ kind: 'registry', reference })
  readonly bring = (library: Library, image: string, source: ImageSource, more: Partial<BringRequest> = {}) =>
    library.bring({ image, source, maxGiB: 1, ...more })
  readonly below = (name: string) => {
    const path = join(this.directory, 'pool', name)
    return existsSync(path) ? readdirSync(path) : []
  }
  readonly leavesNothing = () =>
    assert.deepEqual(['images', 'image-trees', 'image-work', 'image-layers'].map(this.below), [[], [], [], []])
  readonly fails = async (failure: ImageFailure, message: RegExp, promise: Promise<unknown>) => {
    await assert.rejects(promise, (error: unknown) => {
      assert.ok(error instanceof ImageFailed, String(error))
      assert.equal(error.failure, failure, `${error.message} ${error.cause}`)
      assert.match(error.message, message)
      return true
    })
    this.leavesNothing()
  }
  readonly rootfs = (library: Library, image: string) => library.rootfsOf(image) as string
  readonly read = (library: Library, image: string, path: string) =>
    readFileSync(join(this.rootfs(library, image), path), 'utf8')
}

export const libraryRoom = (): LibraryRoom => {
  const room = new LibraryRoom()
  beforeEach(async () => {
    // The directory is in memory if possible: on disk the tests would be slow, because each image is synced.
    room.directory = await mkdtemp(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'alcove-library-'))
    await mkdir(join(room.directory, 'in'))
    room.registry = await TestRegistry.start()
  })
  afterEach(async () => {
    await room.registry[Symbol.asyncDispose]()
    await unmountImagePool(join(room.directory, 'pool'))
    await rm(room.directory, { recursive: true, force: true })
  })
  return room
}
