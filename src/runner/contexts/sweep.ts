// Removes abandoned uploads, and contexts that no image uses and nobody has requested recently. Every runner may do this at any
// time.
import type { ContextsInUse } from '#src/wire/contexts.ts'
import { allOf, begunKey, type ContextName, nameOf, prefixOf, root, tableKey, uploadIn } from './keys.ts'
import type { ContextStore } from './store.ts'
import { largestTable, readMoment } from './table.ts'

/** Returns the time of a context's last request. For an incomplete context: when it was begun, or undefined if unknown. */
const lastWanted = async (contexts: ContextStore, name: ContextName): Promise<number | undefined> => {
  const table = await contexts.find(name)
  if (table !== undefined) return table.seenAt
  return readMoment(await contexts.store.get(begunKey(name), largestTable))?.at
}

/**
 * Removes a context. Its table of chunks goes first, so that nobody sees the context any more. The marker `begun.json` goes last.
 */
const remove = async ({ store }: ContextStore, name: ContextName): Promise<void> => {
  await store.remove(tableKey(name))
  for await (const { key } of store.list(prefixOf(name))) if (key !== begunKey(name)) await store.remove(key)
  await store.remove(begunKey(name))
}

/** Removes the contexts and uploads that are not needed any more. Returns the number of removed contexts. */
export const sweepContexts = async (
  contexts: ContextStore,
  { organizationId, inUse }: ContextsInUse,
): Promise<number> => {
  const used = new Set(inUse.flatMap(({ organizationId: id, hashes }) => hashes.map((hash) => `${id}/${hash}`)))
  const found = new Map<string, { name: ContextName; uploads: Set<string> }>()
  for await (const { key } of contexts.store.list(organizationId === undefined ? root : allOf(organizationId))) {
    const name = nameOf(key)
    if (name === undefined) continue
    const text = `${name.organizationId}/${name.hash}`
    const context = found.get(text) ?? { name, uploads: new Set() }
    const upload = uploadIn(key)
    if (upload !== undefined) context.uploads.add(upload)
    found.set(text, context)
  }
  let removed = 0
  for (const [text, { name, uploads }] of found) {
    if (contexts.isTaking(name)) continue
    const at = used.has(text) ? contexts.now() : await lastWanted(contexts, name)
    if (at === undefined || contexts.now() - at >= contexts.limits.keptMs) {
      await remove(contexts, name)
      removed += 1
      continue
    }
    for (const upload of uploads) if (!(await contexts.isOpen(name, upload))) await contexts.abort(name, upload)
  }
  return removed
}
