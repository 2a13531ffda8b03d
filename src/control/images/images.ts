// Assigns images to the runners that should have them, and removes images that are not needed any more.
// Runners read what they should have with `GET /runners/images`. A message over the link only tells the runners sooner.
// `runner-link/image-reports.ts` handles the reports of runners about images.

import { statesKeepingImage } from '#src/control/snapshots/lifecycle.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import { withLogins } from '../registries/service.ts'
import type { RunningParts } from '../running.ts'
import { findImage, findImageFor, listImagesFor, listRunnersOf, writeWanted } from './image-store.ts'

type Runner = { id: string; regionId: string }

/**
 * Returns the base image for a snapshot of a sandbox: the base of the sandbox's image, or the sandbox's image itself if that
 * image has no base.
 */
export const baseOf = async (transaction: Transaction, image: string): Promise<string> =>
  (await findImage(transaction, image))?.base ?? image

export const listForRunner = async (parts: Pick<RunningParts, 'database' | 'encryption' | 'log'>, runner: Runner) =>
  withLogins(parts, await listImagesFor(parts.database.sql, runner))

/**
 * Sends an image's desired state to the image's runners that have a link to this process. All other runners read the state
 * later, in their list of images.
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
 * Marks the snapshot images of a deleted organization as not wanted. Returns their names, so that the caller can tell
 * the runners.
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

/** Marks the images built for the organization's sandboxes as not wanted. Returns their names for the runners. */
export const dropBuildsOf = async (transaction: Transaction, organizationId: string, now: Date): Promise<string[]> => {
  const rows = await transaction<{ name: string }[]>`
    update images set wanted = false, updated_at = ${now}
    where wanted and built_for = ${organizationId} returning name`
  return rows.map(({ name }) => name)
}
