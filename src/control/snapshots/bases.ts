// Lets a definition use snapshots as base images. A name in FROM, `--from` or `--mount` first means a snapshot that the
// organization sees, otherwise an image in a registry.
import type { Sql } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import type { Definition } from '#src/wire/runner-link.ts'
import { checkMade } from './awaiting.ts'
import { isBuiltPerOrganization } from './desktop.ts'
import { findSnapshotByIdOrName } from './store.ts'

/**
 * Maximum number of names in one Dockerfile that are looked up as snapshots. All names after these mean images in an
 * image registry.
 */
const mostNames = 100

/** The form of a snapshot's name. A name with a registry, a tag or a digest is never a snapshot. */
const nameShape = /^[\w.-]{1,100}$/

/**
 * Finds names in a Dockerfile that may be snapshots. A name can be something else, such as a stage: only the runner
 * parses the Dockerfile completely.
 */
const namesIn = (dockerfile: string): { name: string; isArg: boolean }[] => {
  const after = (keyword: RegExp) => [...dockerfile.matchAll(keyword)].map(([, name = '']) => name)
  const named = [
    ...after(/^[ \t]*FROM[ \t]+(?:--[^\s]+[ \t]+)*([^\s]+)/gim),
    ...after(/[ \t]--from=([^\s]+)/gi),
    ...after(/[,=]from=([^\s,]+)/gi),
  ]
  // FROM can use a variable that ARG sets, so the default value of an ARG may be a snapshot.
  const args = after(/^[ \t]*ARG[ \t]+\w+=["']?([^\s"']+)/gim)
  return [...new Set([...named, ...args])]
    .filter((name) => nameShape.test(name) && name !== 'scratch')
    .map((name) => ({ name, isArg: !named.includes(name) }))
    .slice(0, mostNames)
}

export const withSnapshots = async (sql: Sql, organizationId: string, definition: Definition): Promise<Definition> => {
  const snapshots: Record<string, string> = {}
  for (const { name, isArg } of namesIn(definition.dockerfile)) {
    const snapshot = await findSnapshotByIdOrName(sql, organizationId, name)
    if (snapshot === undefined || (isArg && snapshot.state !== 'active')) continue
    // At a server's first start, the general snapshots are still being made. The caller then has to try again.
    if (snapshot.general) checkMade(snapshot)
    if (snapshot.state !== 'active')
      throw new Problem('bad_request', `FROM ${name}: the snapshot is ${snapshot.state}, and not active.`)
    if (isBuiltPerOrganization(snapshot)) {
      if (isArg) continue
      throw new Problem(
        'bad_request',
        `FROM ${name}: this snapshot is a definition. Copy its lines (GET /snapshots/${name}: buildInfo) and add yours.`,
      )
    }
    snapshots[name] = snapshot.image
  }
  return Object.keys(snapshots).length === 0 ? definition : { ...definition, snapshots }
}
