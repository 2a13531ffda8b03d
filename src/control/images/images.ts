// Brings images to the runners that should have them, and takes them away again; runner-link/image-reports.ts hears what runners say of them.
//
// Like sandboxes: rows say what should be, runners read them (`GET /runners/images`) and are told of changes sooner over
// their link; everything may be said twice.

import { statesKeepingImage } from '#src/control/snapshots/lifecycle.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import type { RunningParts } from '../running.ts'
import { findImage, findImageFor, listImagesFor, listRunnersOf, writeWanted } from './image-store.ts'

type Runner = { id: string; regionId: string }

/** A snapshot made of a sandbox rests on the image of that sandbox, or on what that rests on. */
export const baseOf = async (transaction: Transaction, image: string): Promise<string> =>
  (await findImage(transaction, image))?.base ?? image

export const listForRunner = ({ database }: Pick<RunningParts, 'database'>, runner: Runner) =>
  listImagesFor(database.sql, runner)

/** Tells the runners that are linked here what this image should be. Those that are not find it in their list. */
export const pushImage = async ({ database, links, log }: RunningParts, name: string): Promise<void> => {
  try {
    for (const runner of await listRunnersOf(database.sql, name)) {
      if (!links.has(runner.id)) continue
      const assignment = await findImageFor(database.sql, runner, name)
      if (assignment) links.say(runner.id, { type: 'image', assignment })
    }
  } catch (error) {
    log.warn({ err: error, image: name }, 'an image could not be pushed; runners find it in their lists')
  }
}

/** No snapshot needs it any more. Sandboxes made from it keep it for as long as they live. */
export const dropImage = async (transaction: Transaction, name: string, now: Date): Promise<void> => {
  const [other] = await transaction`
    select 1 from snapshots where image = ${name} and state in ${transaction(statesKeepingImage)} limit 1`
  if (!other) await writeWanted(transaction, name, false, now)
}

/** Drops the images of all snapshots of an organization that is being deleted. Answers their names, to tell the runners. */
export const dropImagesOf = async (transaction: Transaction, organizationId: string, now: Date): Promise<string[]> => {
  const rows = await transaction<{ name: string }[]>`
    update images set wanted = false, updated_at = ${now}
    where wanted and name in (select image from snapshots where organization_id = ${organizationId})
      and not exists (
        select from snapshots where snapshots.image = images.name and organization_id is distinct from ${organizationId})
    returning name`
  return rows.map(({ name }) => name)
}

/** Drops the images that were built for the organization's sandboxes, and for nobody else. */
export const dropBuildsOf = async (transaction: Transaction, organizationId: string, now: Date): Promise<string[]> => {
  const rows = await transaction<{ name: string }[]>`
    update images set wanted = false, updated_at = ${now}
    where wanted and built_for = ${organizationId} returning name`
  return rows.map(({ name }) => name)
}
