// Snapshots that definitions build on: what FROM and `--from` name is a snapshot of the organization before it is an image of a
// registry.
import type { Sql } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import type { Definition } from '#src/wire/runner-link.ts'
import { findSnapshotByIdOrName } from './store.ts'

/** Others are read as images of registries. */
const mostNames = 100

/** A name with a registry, a tag or a digest is none of a snapshot. A variable is not looked into. */
const nameShape = /^[\w.-]{1,100}$/

/** What a definition may mean by a name, whatever else it says: the runner reads it as it is meant. */
const namesIn = (dockerfile: string): string[] => {
  const after = (keyword: RegExp) => [...dockerfile.matchAll(keyword)].map(([, name = '']) => name)
  const all = [
    ...after(/^[ \t]*FROM[ \t]+(?:--[^\s]+[ \t]+)*([^\s]+)/gim),
    ...after(/[ \t]--from=([^\s]+)/gi),
    ...after(/[,=]from=([^\s,]+)/gi),
  ]
  return [...new Set(all)].filter((name) => nameShape.test(name) && name !== 'scratch').slice(0, mostNames)
}

export const withSnapshots = async (sql: Sql, organizationId: string, definition: Definition): Promise<Definition> => {
  const snapshots: Record<string, string> = {}
  for (const name of namesIn(definition.dockerfile)) {
    const snapshot = await findSnapshotByIdOrName(sql, organizationId, name)
    if (snapshot === undefined) continue
    if (snapshot.state !== 'active')
      throw new Problem('bad_request', `FROM ${name}: the snapshot is ${snapshot.state}, and not active.`)
    snapshots[name] = snapshot.image
  }
  return Object.keys(snapshots).length === 0 ? definition : { ...definition, snapshots }
}
