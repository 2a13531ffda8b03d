// For tests of archives: checks of expected errors, and functions that look into a store.
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

/** Returns an object with the methods of a store. A test can then replace some of these methods. Stored objects are not copied. */
export const bound = (store: ObjectStore): ObjectStore => ({
  put: store.put.bind(store),
  get: store.get.bind(store),
  list: store.list.bind(store),
  remove: store.remove.bind(store),
  close: store.close.bind(store),
})

/** Wraps a store so that the keys of all stored objects are recorded in `calls`. */
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

/** Removes the lines of a list of files that describe sockets, because archives do not contain sockets. */
export const withoutSockets = (lines: readonly string[]) => lines.filter((line) => !line.includes('/socket'))
