// Lets the creation of a sandbox wait while its snapshot is still being made, for example at the first start of a
// server.

import { setTimeout as delay } from 'node:timers/promises'
import { Budget } from '#src/kit/budget.ts'
import { Problem } from '#src/problems.ts'
import type { Parts } from '../parts.ts'
import { statesInMaking } from './lifecycle.ts'
import { findSnapshotByIdOrName, type Snapshot } from './store.ts'

const lookEveryMs = 250
/** The name under which runners keep the built-in image of the server. */
const defaultImage = 'default'
/**
 * Maximum number of creates that wait until their snapshot is made, per organization and in total. Further creates are refused
 * immediately.
 */
const waiters = new Budget({ each: 32, all: 256 })

const isInMaking = ({ state }: Pick<Snapshot, 'state'>): boolean => statesInMaking.includes(state)

/** Throws if the snapshot is still being made. */
export const checkMade = (snapshot: Pick<Snapshot, 'name' | 'state' | 'image'>): void => {
  if (!isInMaking(snapshot)) return
  throw new Problem(
    'snapshot_in_making',
    snapshot.image === defaultImage
      ? 'The default image is being made, which takes a few minutes at the first start. Try again in a moment.'
      : `The snapshot "${snapshot.name}" is ${snapshot.state}. Try again in a moment.`,
  )
}

/** Returns when the snapshot is no longer being made, or when `timeoutMs` have passed. */
export const untilMade = async (
  { database }: Pick<Parts, 'database'>,
  organizationId: string,
  idOrName: string,
  timeoutMs: number,
): Promise<void> => {
  if (!waiters.take(organizationId)) return
  try {
    const deadline = performance.now() + timeoutMs
    while (performance.now() < deadline) {
      const snapshot = await findSnapshotByIdOrName(database.sql, organizationId, idOrName)
      if (snapshot === undefined || !isInMaking(snapshot)) return
      await delay(Math.max(0, Math.min(lookEveryMs, deadline - performance.now())))
    }
  } finally {
    waiters.give(organizationId)
  }
}
