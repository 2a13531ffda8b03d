// Assigns images to the runners that should have them, and removes images that are not needed any more. The database
// has the desired state of each image, which runners read with `GET /runners/images`. Control also sends each change
// over the link of the runner, so that the runner knows of the change sooner. A lost or repeated message does no harm.
// Reports of runners about images are handled in `runner-link/image-reports.ts`.

import { statesKeepingImage } from '#src/control/snapshots/lifecycle.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import { withLogins } from '../registries/service.ts'
import type { RunningParts } from '../running.ts'
import { findImage, findImageFor, listImagesFor, listRunnersOf, writeWanted } from './image-store.ts'

type Runner = { id: string; regionId: string }

/**
 * Returns the base image for a snapshot of a sandbox: the base image of the sandbox's own image (`image`), or `image`
 * if that has no base image.
 */
export const baseOf = async (transaction: Transaction, image: string): Promise<string> =>
  (await findImage(transaction, image))?.base ?? image

export const listForRunner = async (parts: Pick<RunningParts, 'database' | 'encryption' | 'log'>, runner: Runner) =>
  withLogins(parts, await listImagesFor(parts.database.sql, runner))

/**
 * Sends the desired state of the image to the runners whose link is open in this control process. The other runners
 * find the desired state when they next read the list of their images.
 */
export const pushImage = async (parts: RunningParts, name: string): Promise<void> => {
  const { database, links, log } = parts
  try {
    for (const runner of await listRunnersOf(database.sql, name)) {
      if (!links.has(runner.id)) continue
      const found = await findImageFor(database.sql, runner, name)
      const [assignment] = await withLogins(parts, found ? [found] : [])
      if (assignment) links.say(runner.id, { type: 'image', assignment })
    }
  } catch (error) {
    log.warn({ err: error, image: name }, 'an image could not be pushed; runners find it in their lists')
  }
}

/**
 * Marks the image as not wanted if no snapshot uses it. Runners still keep the image while sandboxes made from it
 * exist.
 */
export const dropImage = async (transaction: Transaction, name: string, now: Date): Promise<void> => {
  const [other] = await transaction`
    select 1 from snapshots where image = ${name} and state in ${transaction(statesKeepingImage)} limit 1`
  if (!other) await writeWanted(transaction, name, false, now)
}

/**
 * Marks the snapshot images of an organization that is being deleted as not wanted. Returns their names, so that the
 * caller can tell the runners.
 */
export const dropImagesOf = async (transaction: Transaction, organizationId: string, now: Date): Promise<string[]> => {
  const rows = await transaction<{ name: string }[]>`
    update images set wanted = false, updated_at = ${now}
    where wanted and name in (select image from snapshots where organization_id = ${organizationId})
      and not exists (
        select from snapshots where snapshots.image = images.name and organization_id is distinct from ${organizationId})
    returning name`
  return rows.map(({ name }) => name)
}

/**
 * Marks the images that were built for sandboxes of the organization as not wanted. Returns their names, so that the
 * caller can tell the runners.
 */
export const dropBuildsOf = async (transaction: Transaction, organizationId: string, now: Date): Promise<string[]> => {
  const rows = await transaction<{ name: string }[]>`
    update images set wanted = false, updated_at = ${now}
    where wanted and built_for = ${organizationId} returning name`
  return rows.map(({ name }) => name)
}
