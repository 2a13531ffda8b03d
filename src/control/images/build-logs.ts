// Build logs of images, with a maximum size. Callers can follow a log until the build ends.
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { Budget } from '#src/kit/budget.ts'
import { Problem } from '#src/problems.ts'
import type { RunningParts } from '../running.ts'
import type { Sql } from '../storage/database.ts'

/** Maximum bytes of the build log of one image. Later pieces are not stored. */
const mostBytes = 1024 * 1024
const keptDays = 7
const lookEveryMs = 500
const longestFollowMs = 60 * 60_000
/** Number of pieces that one query reads from a log. */
const piecesAtOnce = 100

/** Stores a piece of a build log. Ignores the piece if the log is full, or if the image is not of this runner or region. */
export const addBuildLog = async (
  { database, clock }: Pick<RunningParts, 'database' | 'clock'>,
  runner: { id: string; regionId: string },
  { image, text }: { image: string; text: string },
): Promise<void> => {
  const { sql } = database
  const clean = text.replaceAll('\0', '').toWellFormed()
  if (clean === '') return
  await sql`
    insert into build_logs (image, at, text)
    select name, ${clock.now()}, ${clean} from images
    where name = ${image} and coalesce(runner_id = ${runner.id}, region_id = ${runner.regionId})
      and (select coalesce(sum(octet_length(text)), 0) from build_logs where image = ${image}) < ${mostBytes}`
}

/**
 * Deletes the log of an image. Called when the image is built again, so that the log contains only the newest attempt.
 */
export const forgetBuildLog = async (sql: Sql, image: string): Promise<void> => {
  await sql`delete from build_logs where image = ${image}`
}

/** Deletes the build logs that are older than `keptDays`, if their images are no longer wanted. */
export const dropOldBuildLogs = async (sql: Sql, now: Date): Promise<void> => {
  await sql`
    delete from build_logs where at < ${new Date(now.getTime() - keptDays * 86_400_000)}
      and not exists (select from images where images.name = build_logs.image and images.wanted)`
}

/**
 * Connections that may follow build logs at a time. `sure`: the number that each organization may have even if `all` is
 * reached.
 */
const followers = new Budget({ each: 50, all: 200, sure: 4 })

const pieces = async function* (
  { database }: Pick<RunningParts, 'database'>,
  image: string,
  isBeingMade: () => Promise<boolean>,
): AsyncGenerator<string> {
  const { sql } = database
  const end = performance.now() + longestFollowMs
  for (let last = 0; ; ) {
    // When the image is no longer being made, the log is read once more, so that the last lines are not missed.
    const goesOn = performance.now() < end && (await isBeingMade())
    for (;;) {
      const rows = await sql<{ id: number; text: string }[]>`
        select id, text from build_logs where image = ${image} and id > ${last} order by id limit ${piecesAtOnce}`
      for (const { text } of rows) yield text
      last = rows.at(-1)?.id ?? last
      if (rows.length < piecesAtOnce) break
    }
    if (!goesOn) return
    await pause(lookEveryMs, undefined, { ref: false })
  }
}

type Reading = { follow: boolean; organizationId: string; isBeingMade: () => Promise<boolean> }

/**
 * Streams the build log of an image. With `follow`, the stream stays open until the build ends, at most for
 * `longestFollowMs`.
 */
export const readBuildLog = (
  parts: Pick<RunningParts, 'database'>,
  image: string,
  { follow, organizationId, isBeingMade }: Reading,
): Readable => {
  if (!follow) return Readable.from(pieces(parts, image, async () => false))
  if (!followers.take(organizationId))
    throw new Problem('rate_limited', 'Too many build logs are followed at this moment.')
  return Readable.from(pieces(parts, image, isBeingMade)).once('close', () => followers.give(organizationId))
}
