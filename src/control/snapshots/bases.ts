// Lets a definition use snapshots as base images. A name in FROM, `--from` or `--mount` is first looked up as a
// snapshot that the organization sees. If there is no such snapshot, the name means an image in an image registry.
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
 * Finds the names in a Dockerfile that may be names of snapshots. A found name can be something else, for example a
 * stage of the Dockerfile. Only the runner parses the Dockerfile completely.
 */
const namesIn = (dockerfile: string): { name: string; isArg: boolean }[] => {
  const after = (keyword: RegExp) => [...dockerfile.matchAll(keyword)].map(([, name = '']) => name)
  const named = [
    ...after(/^[ \t]*FROM[ \t]+(?:--[^\s]+[ \t]+)*([^\s]+)/gim),
    ...after(/[ \t]--from=([^\s]+)/gi),
    ...after(/[,=]from=([^\s,]+)/gi),
  ]
  // FROM can use a variable that ARG sets. So the default value of each ARG may be the name of a snapshot too.
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
    // At the first start of a server, the image of the general snapshots is still being made. Then `checkMade` throws
    // an error that asks the caller to try again.
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
