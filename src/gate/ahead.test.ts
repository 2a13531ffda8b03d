import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { type Access, type AccessAhead, type AccessQuestion, keyOfQuestion } from '#src/wire/access.ts'
import { type Sides, startSides } from './testing/simulated.ts'

const question: AccessQuestion = {
  sandboxIdOrName: 'box',
  credentials: [{ kind: 'bearer', token: 'key-1' }],
  countsAsActivity: true,
}

const ahead = (sides: Sides, more: Partial<AccessAhead> = {}): AccessAhead => ({
  type: 'access',
  question: keyOfQuestion(question),
  access: sides.access().body as Access,
  at: Date.now(),
  ...more,
})

const call = (sides: Sides, key = 'key-1') =>
  fetch(`${sides.url}/toolbox/box/x`, { headers: { authorization: `Bearer ${key}` } })

suite('access answers that control sends to the gate before a call', () => {
  test('if control sent an access answer before a call, the gate does not ask control about the call', async () => {
    await using sides = await startSides()
    sides.control.answer = () => ({ status: 401, body: {} })
    await sides.tell(JSON.stringify(ahead(sides)))
    assert.equal((await call(sides)).status, 200)
    assert.deepEqual(sides.asked, [])
    assert.equal((await call(sides, 'key-2')).status, 401)
    assert.equal(sides.asked.length, 1)
  })

  test('an access answer sent ahead of a call is valid for one second after the time in its field `at`', async (t) => {
    await using sides = await startSides()
    sides.control.answer = () => ({ status: 401, body: {} })
    const [now, date] = [performance.now(), Date.now()]
    const clock = t.mock.method(performance, 'now', () => now)
    t.mock.method(Date, 'now', () => date)
    await sides.tell(JSON.stringify(ahead(sides, { at: date - 600 })))
    clock.mock.mockImplementation(() => now + 300)
    assert.equal((await call(sides)).status, 200)
    clock.mock.mockImplementation(() => now + 401)
    assert.equal((await call(sides)).status, 401)
  })

  test('the gate ignores an access answer sent ahead that is too old, wrong or of a stopped sandbox', async () => {
    await using sides = await startSides()
    const { at } = ahead(sides)
    const stopped = sides.access({ isStarted: false, state: 'stopped' }).body as Access
    const said: unknown[] = [
      ahead(sides, { at: at - 1000 }),
      ahead(sides, { at: at + 60_000 }),
      ahead(sides, { access: stopped }),
      ahead(sides, { access: { sandboxId: 'box' } as Access }),
      { ...ahead(sides), at: null },
      { type: 'of a later version' },
      null,
      [],
    ]
    for (const message of said) await sides.tell(JSON.stringify(message))
    await sides.tell('{')
    assert.equal((await call(sides)).status, 200)
    assert.deepEqual(sides.asked, [question])
  })
})
