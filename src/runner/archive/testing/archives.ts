// For tests of archives: expected failures, and what a store holds.
import assert from 'node:assert/strict'
import { ArchiveFailed, type Why } from '../failed.ts'
import type { ObjectStore } from '../store.ts'

/** The sandbox whose disk is archived. */
export const sandboxId = 'box'

export const fails = (why: Why, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof ArchiveFailed, String(error))
  assert.deepEqual([error.why, message.test(error.message)], [why, true], error.message)
  return true
}

/** Returns an object with the methods of a store, so that a test can replace some of them. */
export const bound = (store: ObjectStore): ObjectStore => ({
  put: store.put.bind(store),
  get: store.get.bind(store),
  list: store.list.bind(store),
  remove: store.remove.bind(store),
  close: store.close.bind(store),
})

/** Wraps a store and records every call that stores an object. */
export const watched = (store: ObjectStore) => {
  const calls: string[] = []
  const put: ObjectStore['put'] = (key, content, signal) => {
    calls.push(`put ${key}`)
    return store.put(key, content, signal)
  }
  const puts = () => calls.filter((call) => call.startsWith('put') && call.includes('/chunks/')).length
  return { store: { ...bound(store), put }, puts, calls }
}

export const objects = async (store: ObjectStore) =>
  (await Array.fromAsync(store.list(`sandboxes/${sandboxId}/`))).map(({ key }) => key).sort()

/** Drops the sockets of ended processes, which an archive does not store. */
export const withoutSockets = (lines: readonly string[]) => lines.filter((line) => !line.includes('/socket'))
