// Delivers the events of an organization to its signed-in clients. A client with an invalid credential is disconnected.
import { credentialChannel } from '#src/control/auth/announce.ts'
import type { Change, Mishap } from '#src/control/sandboxes/record/changes.ts'
import { isClaim } from '#src/control/sandboxes/record/lifecycle.ts'
import { asRecord } from '#src/control/sandboxes/record/sandbox.ts'
import type { SandboxEvent } from '#src/control/sandboxes/record/schemas.ts'
import { findChangeEvent, findEvent } from '#src/control/sandboxes/record/timeline.ts'
import { findSandboxById } from '#src/control/sandboxes/service.ts'
import { inParallel } from '#src/kit/in-parallel.ts'
import type { RunningParts } from '../running.ts'
import { createTurns } from './turns.ts'

const mostPerOrganization = 1000
const mostWaiting = 10_000
const checksAtOnce = 4

export type Watcher = {
  organizationId: string
  /** Whether the credential of the client gives access to this organization at this moment. */
  isAllowed: () => Promise<boolean>
  /** Sends an event to the client. `text`: the JSON of the event's name and payload. */
  tell: (text: string) => void
  putOut: () => void
  /** Closes the client's connection. Called when the server shuts down. */
  close: () => void
}

export type Watchers = {
  /** Adds a client. Returns false if its organization has too many clients already. */
  add: (watcher: Watcher) => boolean
  leave: (watcher: Watcher) => void
  close: () => void
}

/** Returns who caused a state change, and why. The timeline of the sandbox contains both. */
const whyOf = (event: SandboxEvent | undefined) =>
  event && {
    by: event.by,
    ...(event.reason === undefined ? {} : { reason: event.reason }),
    ...(event.cause === undefined ? {} : { cause: event.cause }),
  }

type WatchersParts = Pick<RunningParts, 'database' | 'settings' | 'changes' | 'log'>

export const openWatchers = async (parts: WatchersParts): Promise<Watchers> => {
  const { database, settings, changes, log } = parts
  const byOrganization = new Map<string, Set<Watcher>>()

  const leave = (watcher: Watcher) => {
    const others = byOrganization.get(watcher.organizationId)
    others?.delete(watcher)
    if (others?.size === 0) byOrganization.delete(watcher.organizationId)
  }

  /** Disconnects the client if its credential has become invalid. Returns whether the client is still connected. */
  const check = async (watcher: Watcher): Promise<boolean> => {
    if (await watcher.isAllowed()) return true
    leave(watcher)
    watcher.putOut()
    return false
  }

  let isChecking = false
  let isAskedAgain = false
  const checkAll = async (): Promise<void> => {
    isAskedAgain = true
    if (isChecking) return
    isChecking = true
    try {
      while (isAskedAgain) {
        isAskedAgain = false
        const everybody = [...byOrganization.values()].flatMap((watchers) => [...watchers])
        await inParallel(checksAtOnce, everybody, async (watcher) => void (await check(watcher)))
      }
    } catch (error) {
      // If a credential could not be checked, its client stays connected. The credential is checked again before the client's
      // next event and ping.
      log.warn({ err: error }, 'not every event socket could be checked')
    } finally {
      isChecking = false
    }
  }
  const hearOfCredentials = () => void checkAll()
  await database.listen(credentialChannel, hearOfCredentials, hearOfCredentials)

  const tellAll = async (organizationId: string, events: readonly unknown[]): Promise<void> => {
    const texts = events.map((event) => JSON.stringify(event))
    const watchers = [...(byOrganization.get(organizationId) ?? [])]
    const allowed = await Promise.all(watchers.map(check))
    for (const [index, watcher] of watchers.entries()) if (allowed[index]) for (const text of texts) watcher.tell(text)
  }

  const tellMishap = async ({ sandboxId, organizationId, eventId }: Mishap): Promise<void> => {
    if (!byOrganization.has(organizationId)) return
    const found = await findSandboxById(database.sql, sandboxId)
    const event = await findEvent(database, sandboxId, eventId)
    if (found === undefined || found.warm_pool_id !== null || event === undefined) return
    const sandbox = asRecord(found, settings.proxyUrl)
    await tellAll(organizationId, [['sandbox.mishap', { sandbox, happenedAt: event.at, ...whyOf(event) }]])
  }

  const tell = async (change: Change): Promise<void> => {
    const { sandboxId, organizationId, from, to, row } = change
    if (!byOrganization.has(organizationId)) return
    const found = row ?? (await findSandboxById(database.sql, sandboxId))
    // Nobody gets the events of a warm sandbox before a create claims it, not even the organization that owns the warm pool.
    if (found === undefined || found.warm_pool_id !== null) return
    const until = found.state_changed_at
    const why = whyOf(await findChangeEvent(database, { sandboxId, from, to, until }))
    const sandbox = asRecord(found, settings.proxyUrl)
    const isNew = from === null || isClaim(from, to)
    const hasFailed = to === 'error' || to === 'build_failed'
    const events = [
      // From `sandbox.state.updated` the SDK reads only the state. From `sandbox.created` it reads the whole sandbox.
      // A failure is therefore sent as `sandbox.created` too, so that the SDK gets the reason.
      ...(isNew || hasFailed ? [['sandbox.created', { ...sandbox, ...why }]] : []),
      ...(isNew ? [] : [['sandbox.state.updated', { sandbox, oldState: from, newState: to, ...why }]]),
    ]
    await tellAll(organizationId, events)
  }

  const takeTurn = createTurns(mostWaiting)
  const inTurn = ({ organizationId, sandboxId }: Change | Mishap, run: () => Promise<void>) => {
    if (!byOrganization.has(organizationId)) return
    takeTurn(organizationId, () =>
      run().catch((error) => log.warn({ err: error, sandboxId }, 'a change could not be told')),
    )
  }
  const stopHearing = [
    changes.hear((change) => inTurn(change, () => tell(change))),
    changes.hearMishaps((mishap) => inTurn(mishap, () => tellMishap(mishap))),
  ]

  return {
    add: (watcher) => {
      const others = byOrganization.get(watcher.organizationId) ?? new Set()
      if (others.size >= mostPerOrganization) return false
      byOrganization.set(watcher.organizationId, others.add(watcher))
      return true
    },
    leave,
    close: () => {
      for (const stop of stopHearing) stop()
      for (const watchers of byOrganization.values()) for (const watcher of watchers) watcher.close()
    },
  }
}
