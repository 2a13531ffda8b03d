import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'
import type { Delivery, Outcome } from './delivery.ts'
import { claim, dispatch, finish, type ProviderKind } from './queue.ts'

const { ours } = organizations
const provider: ProviderKind = 'embedded'
/** A little longer than the lease of a claimed delivery. After this time, another process may send the delivery. */
const leasePassed = { seconds: 21 }

/**
 * Starts control with one queued message for an endpoint. Control's own sender is closed, so that only the test claims
 * the message.
 */
const startWithMessage = async () => {
  const app = await startControl()
  await app.app.webhooks.close()
  const body = { url: 'https://hooks.example.com/alcove' }
  assert.equal((await app.as('owner').post(`/webhooks/organizations/${ours}/endpoints`, body)).status, 201)
  await app.database.sql`
    insert into webhook_messages (public_id, organization_id, event, subject_id, at)
    values ('msg_one', ${ours}, 'sandbox.created', 'one', ${app.clock.now()})`
  await app.database.transaction((transaction) => dispatch(transaction, provider, app.clock.now()))
  return app
}

const claimNow = async ({ database, clock }: TestControl): Promise<Delivery | undefined> => {
  const all = { room: 10, share: 10, busyEndpoints: [], busyOrganizations: [] }
  const [delivery] = await claim(database.sql, provider, { ...all, now: clock.now() })
  return delivery
}

const finishNow = async ({ database, clock }: TestControl, delivery: Delivery | undefined, outcome: Outcome) => {
  assert.ok(delivery)
  const attempted = { outcome, at: clock.now(), durationMilliseconds: 5 }
  await database.transaction((transaction) => finish(transaction, delivery, attempted, clock.now()))
}

const stateOf = async ({ database }: TestControl) => {
  const [delivery] = await database.sql`select state, attempts from webhook_deliveries`
  const attempts = await database.sql`select number, is_delivered from webhook_attempts order by number`
  return { ...delivery, told: attempts.map(({ number, is_delivered }) => [number, is_delivered]) }
}

suite('webhook deliveries that a sender has claimed', () => {
  test('while its lease lasts, a claimed webhook delivery cannot be claimed by another sender', async () => {
    await using app = await startWithMessage()
    assert.equal((await claimNow(app))?.attempts, 1)
    app.clock.advance({ seconds: 19 })
    assert.equal(await claimNow(app), undefined)
    app.clock.advance({ seconds: 2 })
    assert.equal((await claimNow(app))?.attempts, 2)
  })

  test('a sender whose lease has ended writes no result if another sender has taken the delivery meanwhile', async () => {
    await using app = await startWithMessage()
    const late = await claimNow(app)
    app.clock.advance(leasePassed)
    const current = await claimNow(app)
    const claimed = { state: 'waiting', attempts: 2, told: [] }
    const outcomes: Outcome[] = [
      { kind: 'delivered', status: 200 },
      { kind: 'failed', status: 500, error: null },
      { kind: 'gone', status: 410, error: 'It is gone.' },
    ]
    for (const outcome of outcomes) {
      await finishNow(app, late, outcome)
      assert.deepEqual(await stateOf(app), claimed, outcome.kind)
    }
    await finishNow(app, current, { kind: 'delivered', status: 200 })
    assert.deepEqual(await stateOf(app), { state: 'delivered', attempts: 2, told: [[2, true]] })
  })
})
