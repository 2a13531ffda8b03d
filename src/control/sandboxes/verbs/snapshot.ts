// A snapshot of a sandbox: its disk at one moment becomes an image, from which other sandboxes are made.

import { randomUUID } from 'node:crypto'
import type { Actor } from '#src/control/auth/actor.ts'
import { checkNotSuspended } from '#src/control/people/organization.ts'
import type { RunningParts } from '#src/control/running.ts'
import { writeSnapshotOf } from '#src/control/snapshots/of-sandbox.ts'
import { Problem } from '#src/problems.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import type { CreateSandboxSnapshot } from '../record/schemas.ts'
import { getSandbox } from '../record/store.ts'
import { findMade, onceFor, rememberMade } from './idempotency.ts'
import { moveSandbox } from './move.ts'

/**
 * Begins a snapshot of a sandbox, and returns the sandbox. The verb ends when the runner reports that the image is made or has
 * failed. A repeated idempotency key begins no second snapshot.
 */
export const snapshotSandbox = async (
  parts: RunningParts,
  actor: Actor,
  idOrName: string,
  { name, includeMemory }: CreateSandboxSnapshot,
  idempotencyKey?: string,
): Promise<SandboxRow> => {
  checkNotSuspended(parts, actor)
  const { database, clock } = parts
  if (includeMemory) throw new Problem('unprocessable', 'includeMemory: only the disk can be kept.')
  const once =
    idempotencyKey === undefined ? undefined : onceFor(actor.organization.id, idempotencyKey, { idOrName, name })
  const findDone = async () => once && (await findMade(database.sql, once))
  const done = await findDone()
  if (done) return done
  const sandbox = await getSandbox(database.sql, actor.organization.id, idOrName)
  try {
    return await moveSandbox(parts, sandbox, 'snapshot', {
      by: { kind: 'user', id: actor.user.id },
      check: async (transaction, found) => {
        const image = `snap-${randomUUID()}`
        await writeSnapshotOf(transaction, found, name, image, clock.now())
        if (once) await rememberMade(transaction, once, found.id, clock.now())
        return { snapshot_image: image }
      },
    })
  } catch (error) {
    // A simultaneous request with the same idempotency key may have begun this snapshot. Then this request succeeds, too.
    const made = await findDone()
    if (made) return made
    throw error
  }
}
