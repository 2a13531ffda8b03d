import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { Problem } from '#src/problems.ts'
import type { TicketKey } from '#src/wire/ticket.ts'
import { newSigner } from './testing/signer.ts'
import { TicketChecks } from './tickets.ts'

const need = { sandboxId: 'box-id', method: 'GET', path: '/work-dir' }

/** Returns an object that checks tickets as the gate does, and a simulated control that lists `keys` as valid. */
const startSides = (...keys: TicketKey[]) => {
  const control = { keys, asked: 0, answers: true }
  const tickets = new TicketChecks({
    listKeys: async () => {
      control.asked += 1
      if (!control.answers) throw new Problem('unavailable')
      return control.keys
    },
    log: silentLog(),
  })
  return { control, tickets }
}

/** Makes a clock that the test can advance. The gate uses this clock to limit how often it asks control. */
const clockOf = (t: { mock: typeof test.mock }) => {
  let now = performance.now()
  t.mock.method(performance, 'now', () => now)
  return {
    pass: (ms: number) => {
      now += ms
    },
  }
}

suite('the gate’s tickets and control’s keys', () => {
  test('the gate accepts a ticket for many calls, and asks control only once for the keys of tickets', async () => {
    const signer = newSigner()
    const { control, tickets } = startSides(signer.key)
    const text = signer.sign()
    const checked = await Promise.all(Array.from({ length: 50 }, () => tickets.check(text, need)))
    assert.deepEqual(new Set(checked.map(({ sandboxId }) => sandboxId)), new Set(['box-id']))
    await tickets.check(signer.sign(), need)
    assert.equal(control.asked, 1)
  })

  test('the gate refuses a ticket of another sandbox, even if the ticket was accepted for its own sandbox', async () => {
    const signer = newSigner()
    const { tickets } = startSides(signer.key)
    const text = signer.sign()
    await tickets.check(text, need)
    await assert.rejects(tickets.check(text, { ...need, sandboxId: 'other' }), { status: 401 })
    await assert.rejects(tickets.check(text, { sandboxId: 'box-id', port: 3000 }), { status: 403 })
  })

  test('the gate refuses an expired ticket, even if the gate accepted that ticket before', async (t) => {
    const signer = newSigner()
    const { tickets } = startSides(signer.key)
    const text = signer.sign()
    await tickets.check(text, need)
    const later = Date.now() + 60_000
    t.mock.method(Date, 'now', () => later)
    await assert.rejects(tickets.check(text, need), { status: 401 })
  })

  test('the gate accepts the first ticket of a new key, and refuses tickets of a key that control removed', async (t) => {
    const clock = clockOf(t)
    const [former, next] = [newSigner('former'), newSigner('next')]
    const { control, tickets } = startSides(former.key)
    const text = former.sign()
    await tickets.check(text, need)
    control.keys = [next.key, former.key]
    clock.pass(1001)
    await tickets.check(next.sign(), need)
    await tickets.check(text, need)
    control.keys = [next.key]
    clock.pass(1001)
    await tickets.renewKeys()
    await assert.rejects(tickets.check(text, need), { status: 401 })
    await tickets.check(next.sign(), need)
  })

  test('tickets that are signed by unknown keys cause at most one request to control per second', async (t) => {
    const clock = clockOf(t)
    const signer = newSigner()
    const { control, tickets } = startSides(signer.key)
    for (let n = 0; n < 20; n++) await assert.rejects(tickets.check(newSigner(`k${n}`).sign(), need), { status: 401 })
    assert.equal(control.asked, 1)
    clock.pass(1001)
    await assert.rejects(tickets.check(newSigner('more').sign(), need), { status: 401 })
    assert.equal(control.asked, 2)
  })

  test('a ticket check fails with 503 if control does not list control’s keys; keys known before stay valid', async () => {
    const signer = newSigner()
    const { control, tickets } = startSides(signer.key)
    control.answers = false
    await assert.rejects(tickets.check(signer.sign(), need), { status: 503 })
    control.answers = true
    await tickets.check(signer.sign(), need)
    control.answers = false
    await assert.rejects(tickets.renewKeys(), { status: 503 })
    await tickets.check(signer.sign(), need)
  })

  test('a ticket check fails with 503 if control lists an invalid key', async () => {
    const { tickets } = startSides({ id: 'key-1', publicKey: 'AAAA' })
    await assert.rejects(tickets.check(newSigner().sign(), need), { status: 503 })
  })
})
