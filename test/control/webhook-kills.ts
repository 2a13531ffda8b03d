// Kills control again and again between the commit of an event and the sending of its webhook message. Then compares the received
// events with the committed events.
import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { openDatabase } from '#src/control/storage/database.ts'
import { newEncryptionKey } from '#src/control/storage/encryption.ts'
import { queueLock } from '#src/control/webhooks/queue.ts'
import { type ControlProcess, startControlProcess } from './control-process.ts'
import { keys, organizations } from './people.ts'
import { openTestDatabase } from './test-database.ts'
import { startReceiver, verify } from './webhook-receiver.ts'

export type Kills = {
  kills: number
  /** Number of kills of control at which at least one event was committed but had not arrived at its receiver. */
  betweenCommitAndSend: number
  /**
   * Number of kills that came after an event's commit and surely before its message was sent, because the test held a lock that
   * control needs for sending.
   */
  strictlyBetween: number
  /** Number of kills that came after control had begun to send an event, and before the event arrived. */
  whileSending: number
  committed: number
  received: number
  /** Number of events that were received more than once. */
  repeated: number
}

/**
 * When a round kills control. `held`: after the commit of an event, while a lock of the test prevents the sending of its webhook
 * message. A number: so many ms after the test has seen the commit, whether the message was sent or not.
 */
export type Moment = 'held' | number

const buildInfo = { dockerfileContent: 'FROM debian:12\n' }
const untilMilliseconds = 120_000

const callAsOwner = async ({ base }: ControlProcess, method: string, path: string, body?: unknown) => {
  const reply = await fetch(`${base}${path}`, {
    method,
    headers: { authorization: `Bearer ${keys.owner}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await reply.text()
  return { status: reply.status, body: text === '' ? undefined : JSON.parse(text) }
}

/** Runs one round for each of `moments`. In each round, control is killed once, at that moment. */
export const runKills = async (moments: readonly Moment[], say: (line: string) => void = () => {}): Promise<Kills> => {
  await using opened = await openTestDatabase()
  await using receiver = await startReceiver()
  const { sql } = opened.database
  const settings = {
    ALCOVE_ALLOW_PRIVATE_TARGETS: '127.0.0.0/8',
    // All control processes get the same encryption key, because the secrets of webhook endpoints are encrypted with
    // it.
    ALCOVE_ENCRYPTION_KEY: newEncryptionKey(),
    ALCOVE_LOG_LEVEL: 'error',
  }
  // Control takes this PostgreSQL lock before it sends a message. While the test holds the lock, no control process can send a
  // message.
  const holder = openDatabase(opened.url, { max: 1 })
  const hold = () => holder.sql`select pg_advisory_lock(${queueLock})`
  const letGo = () => holder.sql`select pg_advisory_unlock(${queueLock})`
  let hear = () => {}
  await opened.database.listen('webhook_messages', () => hear())
  let control: ControlProcess = await startControlProcess(opened.url, settings)
  try {
    const added = await callAsOwner(control, 'POST', `/webhooks/organizations/${organizations.ours}/endpoints`, {
      url: receiver.url,
    })
    assert.equal(added.status, 201)
    const secret: string = added.body.secret
    // Messages are verified when they arrive, because their signatures expire before the end of the test.
    const refused: unknown[] = []
    receiver.answer((message) => {
      try {
        verify(secret, message)
        return 204
      } catch (error) {
        refused.push(error)
        return 400
      }
    })
    /** Waits until the webhook messages of all committed events have been sent. */
    const settled = async () => {
      const deadline = Date.now() + untilMilliseconds
      for (;;) {
        const [left] = await sql`
          select 1 from webhook_messages where not is_dispatched
          union all select 1 from webhook_deliveries where state = 'waiting' limit 1`
        if (left === undefined) return
        assert.ok(Date.now() < deadline, 'something was still waiting')
        await pause(20)
      }
    }
    const kills = { kills: 0, betweenCommitAndSend: 0, strictlyBetween: 0, whileSending: 0 }
    let lastId = 0

    for (const [round, moment] of moments.entries()) {
      const isHeld = moment === 'held'
      if (isHeld) await settled()
      if (isHeld) await hold()
      // From now on, messages with an id above `lastId` were committed in this round.
      const [newest] = await sql<{ id: number | null }[]>`select max(id) as id from webhook_messages`
      lastId = newest?.id ?? lastId
      const heard = Promise.withResolvers<void>()
      hear = heard.resolve
      const call = (method: string, path: string, body?: unknown) =>
        callAsOwner(control, method, path, body).catch(() => undefined)
      const calls = [
        call('POST', '/sandbox', { name: `box-${round}`, buildInfo }),
        // The list has the same create twice. Control makes only one sandbox of this name.
        call('POST', '/sandbox', { name: `box-${round}`, buildInfo }),
        ...(round === 0 ? [] : [call('DELETE', `/sandbox/box-${round - 1}`)]),
      ]
      await heard.promise
      await pause(isHeld ? 0 : moment)
      await control.kill()
      await Promise.all(calls)
      const made = await sql<{ id: number; publicId: string; isClaimed: boolean }[]>`
        select message.id, public_id as "publicId", coalesce(delivery.attempts > 0, false) as "isClaimed"
        from webhook_messages message left join webhook_deliveries delivery on message_id = message.id
        where message.id > ${lastId} order by message.id`
      const arrived = new Set(receiver.received.map(({ id }) => id))
      const unsent = made.filter(({ publicId }) => !arrived.has(publicId))
      kills.kills += 1
      if (unsent.length > 0) kills.betweenCommitAndSend += 1
      if (unsent.some(({ isClaimed }) => isClaimed)) kills.whileSending += 1
      if (isHeld) {
        assert.ok(made.length > 0, 'the kill came before the commit')
        assert.equal(unsent.length, made.length, 'something was sent although the queue was held')
        kills.strictlyBetween += 1
        await letGo()
      }
      if (round % 20 === 19) say(JSON.stringify(kills))
      control = await startControlProcess(opened.url, settings)
    }

    await settled()
    await control.kill()

    const events = await sql<{ id: string; from: string | null; to: string }[]>`
      select sandbox_id as id, from_state as from, to_state as to from sandbox_events
      where organization_id = ${organizations.ours} order by sandbox_id, sandbox_events.id`
    const committed = events.map(({ id, from, to }) => `${id} ${from} ${to}`)
    assert.deepEqual(refused, [])
    const arrived = receiver.received.map(({ payload }) => {
      const { id, oldState = null, newState, state } = payload
      return `${id} ${oldState} ${newState ?? state}`
    })
    const distinct = [...new Set(arrived)]
    // Checks that every committed event has arrived at least once, and that no other event has arrived.
    assert.deepEqual(distinct.toSorted(), committed.toSorted())
    // The messages about each sandbox must have arrived in the order of their events. Repeated messages do not count.
    const idOf = (text: string) => text.split(' ')[0]
    for (const id of new Set(committed.map(idOf))) {
      const of = (list: string[]) => list.filter((text) => idOf(text) === id)
      assert.deepEqual(of(distinct), of(committed))
    }
    return {
      ...kills,
      committed: committed.length,
      received: arrived.length,
      repeated: arrived.length - distinct.length,
    }
  } finally {
    await control.kill()
    await holder.close()
  }
}
