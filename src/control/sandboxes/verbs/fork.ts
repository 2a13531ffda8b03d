// A fork: another sandbox that begins with a copy of its parent's current disk. The parent does not change.

import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Actor } from '#src/control/auth/actor.ts'
import { newSecret } from '#src/control/auth/secret.ts'
import { checkNotSuspended } from '#src/control/people/organization.ts'
import { checkKept, checkLimits, checkTotals, endOfLife, getQuota, type Quota } from '#src/control/quotas/service.ts'
import { checkRoom } from '#src/control/runners/placement.ts'
import type { RunningParts } from '#src/control/running.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import { copiedOf, type NewSandbox, type PlacedMount } from '../record/columns.ts'
import { checkForkable, moveFrom } from '../record/lifecycle.ts'
import { type SandboxRow, sizeOf } from '../record/sandbox.ts'
import type { ForkSandbox } from '../record/schemas.ts'
import { findSandbox, getSandbox, insertSandbox, lockSandbox } from '../record/store.ts'
import { checkName } from './create-body.ts'
import { canForkElsewhere, forkElsewhere } from './fork-elsewhere.ts'
import { findMade, holdKey, onceFor, rememberMade } from './idempotency.ts'
import { waitWhile } from './wait.ts'

const mostListed = 100
const mostAncestors = 50

const checkCanFork = ({ runner_fork }: SandboxRow): void => {
  if (!runner_fork) throw new Problem('unprocessable', 'The runner of this sandbox cannot fork.')
}

const checkParent = (parent: SandboxRow): void => {
  checkForkable(parent)
  if (parent.first_started_at === null) {
    throw new Problem('bad_request', 'This sandbox has never run, so there is nothing to fork.')
  }
}

const earlier = (one: Date | null, other: Date | null): Date | null =>
  one === null || other === null ? (one ?? other) : one < other ? one : other

const withoutNew = ({ placed, ...mount }: PlacedMount): PlacedMount => {
  if (placed === undefined) return mount
  const { isNew, ...rest } = placed
  return { ...mount, placed: rest }
}

/**
 * Returns the columns of the child: the copied columns of its parent, and its own name, preview token and signing key.
 */
const childOf = (
  parent: SandboxRow,
  name: string | undefined,
  createdBy: string,
  quota: Quota,
  now: Date,
): NewSandbox => {
  const id = randomUUID()
  const move = moveFrom('fork', null)
  return {
    ...copiedOf(parent),
    // The volumes exist, because the parent has started, so the fork's runner must not create them.
    volumes: parent.volumes.map(withoutNew),
    id,
    name: name ?? id,
    state: move.through,
    desired_state: move.to,
    version: 1,
    generation: 1,
    // A fork must not live longer than its parent.
    auto_destroy_at: earlier(parent.auto_destroy_at, endOfLife(quota, now)),
    parent_id: parent.id,
    ancestor_ids: [...parent.ancestor_ids, parent.id].slice(-mostAncestors),
    fork_kind: 'disk',
    preview_token: newSecret(),
    signing_key: newSecret(),
    created_by: createdBy,
    created_at: now,
  }
}

/** Makes the checks of a fork that do not depend on a host. Returns the quota that applies to the child. */
const checkFork = async (transaction: Transaction, { organization }: Actor, parent: SandboxRow): Promise<Quota> => {
  checkParent(parent)
  checkCanFork(parent)
  const size = sizeOf(parent)
  const quota = await getQuota(transaction, organization, parent.region_id, parent.sandbox_class)
  checkLimits(size, quota)
  checkKept(size.diskGiB, parent.auto_delete_interval, quota)
  return quota
}

const write = async (
  transaction: Transaction,
  parts: RunningParts,
  actor: Actor,
  found: SandboxRow,
  name: string | undefined,
): Promise<{ row: SandboxRow; quota: Quota }> => {
  const quota = await checkFork(transaction, actor, found)
  const size = sizeOf(found)
  // Every verb locks the runner first and then the sandbox, to avoid deadlocks.
  await checkRoom(transaction, found.runner_id, null, size, parts.options.overcommit)
  const parent = await lockSandbox(transaction, found.id)
  checkParent(parent)
  if (parent.runner_id !== found.runner_id || !isDeepStrictEqual(sizeOf(parent), size)) {
    throw new Problem('changing', 'The sandbox is changing; try again.')
  }
  const child = childOf(parent, name, actor.user.id, quota, parts.clock.now())
  const row = await insertSandbox(transaction, child, { kind: 'user', id: actor.user.id })
  return { row, quota }
}

/** Makes a fork, waits a while for its start, and returns it. A repeated idempotency key returns the first fork. */
export const forkSandbox = async (
  parts: RunningParts,
  actor: Actor,
  idOrName: string,
  body: ForkSandbox,
  idempotencyKey?: string,
): Promise<SandboxRow> => {
  checkNotSuspended(parts, actor)
  const { database, changes, options } = parts
  const name = body.name === undefined ? undefined : checkName(body.name)
  const once =
    idempotencyKey === undefined ? undefined : onceFor(actor.organization.id, idempotencyKey, { idOrName, ...body })
  const before = once && (await findMade(database.sql, once))
  if (before) return await waitWhile(parts, before, 'forking', options.createWaitSeconds * 1000)

  const parent = await getSandbox(database.sql, actor.organization.id, idOrName)
  const forkHere = () =>
    database.transaction(async (transaction) => {
      if (once) {
        await holdKey(transaction, once)
        const known = await findMade(transaction, once)
        if (known) return { row: known, isNew: false }
      }
      const [{ row: made, quota }] = await Promise.all([
        write(transaction, parts, actor, parent, name),
        actor.tellIn?.(transaction),
      ])
      if (once) await rememberMade(transaction, once, made.id, made.created_at)
      await checkTotals(transaction, { from: null, written: made, to: 'started' }, quota.row)
      return { row: made, isNew: true }
    })
  const { row, isNew } = await forkHere().catch(async (error) => {
    const isFull = error instanceof Problem && error.code === 'no_room'
    if (!isFull || !(await canForkElsewhere(parts, parent))) throw error
    const elsewhere = await forkElsewhere(parts, actor, {
      parent,
      plan: async (transaction, found) => {
        const quota = await checkFork(transaction, actor, found)
        return { child: childOf(found, name, actor.user.id, quota, parts.clock.now()), quota }
      },
      note: async (transaction, child) => {
        if (once) await rememberMade(transaction, once, child.id, child.created_at)
      },
    })
    return { row: elsewhere, isNew: false }
  })
  if (isNew) changes.announce(null, row)
  return await waitWhile(parts, row, row.state, options.createWaitSeconds * 1000)
}

/** Lists the forks of a sandbox, newest first. */
export const listForks = async (
  { database }: RunningParts,
  { organization }: Pick<Actor, 'organization'>,
  idOrName: string,
  { includeDestroyed }: { includeDestroyed: boolean },
): Promise<SandboxRow[]> => {
  const { sql } = database
  const parent = await getSandbox(sql, organization.id, idOrName)
  return await sql<SandboxRow[]>`
    select * from sandboxes
    where organization_id = ${organization.id} and parent_id = ${parent.id}
      ${includeDestroyed ? sql`` : sql`and state <> 'destroyed'`}
    order by created_at desc, id limit ${mostListed}`
}

/** Finds the parent of a fork. Throws 404 if the sandbox is not a fork, or if its parent was destroyed. */
export const getParent = async (
  { database }: RunningParts,
  { organization }: Pick<Actor, 'organization'>,
  idOrName: string,
): Promise<SandboxRow> => {
  const { parent_id } = await getSandbox(database.sql, organization.id, idOrName)
  if (parent_id === null) throw new Problem('not_found', 'This sandbox is not a fork.')
  const parent = await findSandbox(database.sql, organization.id, parent_id)
  if (parent?.id !== parent_id) throw new Problem('not_found', 'The parent of this sandbox is gone.')
  return parent
}

/** Lists those ancestors of a fork that still exist. The oldest ancestor is first, the parent last. */
export const listAncestors = async (
  { database }: RunningParts,
  { organization }: Pick<Actor, 'organization'>,
  idOrName: string,
): Promise<SandboxRow[]> => {
  const { sql } = database
  const { ancestor_ids } = await getSandbox(sql, organization.id, idOrName)
  if (ancestor_ids.length === 0) return []
  const rows = await sql<SandboxRow[]>`
    select * from sandboxes
    where organization_id = ${organization.id} and id in ${sql(ancestor_ids)} and state <> 'destroyed'`
  return ancestor_ids.flatMap((id) => rows.find((row) => row.id === id) ?? [])
}
