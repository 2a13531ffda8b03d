// Removes what no image is made from and nobody has asked for lately, and what nobody finished. Any runner of a store may do
// it, at any time and twice.
import type { ContextsInUse } from '#src/wire/contexts.ts'
import { allOf, begunKey, type ContextName, nameOf, prefixOf, root, tableKey } from './keys.ts'
import type { ContextStore } from './store.ts'
import { largestTable, readMoment } from './table.ts'

/** Undefined: nothing says when, so it is what a removal has left. */
const lastWanted = async (contexts: ContextStore, name: ContextName): Promise<number | undefined> => {
  const table = await contexts.find(name)
  if (table !== undefined) return table.seenAt
  return readMoment(await contexts.store.get(begunKey(name), largestTable))?.at
}

/** The table first: without it the rest counts for nothing. */
const remove = async ({ store }: ContextStore, name: ContextName): Promise<void> => {
  await store.remove(tableKey(name))
  for await (const { key } of store.list(prefixOf(name))) if (key !== begunKey(name)) await store.remove(key)
  await store.remove(begunKey(name))
}

/** Answers how many went. */
export const sweepContexts = async (
  contexts: ContextStore,
  { organizationId, inUse }: ContextsInUse,
): Promise<number> => {
  const used = new Set(inUse.flatMap(({ organizationId: id, hashes }) => hashes.map((hash) => `${id}/${hash}`)))
  const names = new Map<string, ContextName>()
  for await (const { key } of contexts.store.list(organizationId === undefined ? root : allOf(organizationId))) {
    const name = nameOf(key)
    if (name !== undefined) names.set(`${name.organizationId}/${name.hash}`, name)
  }
  let removed = 0
  for (const [text, name] of names) {
    if (used.has(text) || contexts.isTaking(name)) continue
    const at = await lastWanted(contexts, name)
    if (at !== undefined && contexts.now() - at < contexts.limits.keptMs) continue
    await remove(contexts, name)
    removed += 1
  }
  return removed
}
