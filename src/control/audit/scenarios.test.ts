import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { auditedCalls, scenarioOf } from './scenarios.ts'
import { subjectOf } from './subject.ts'
import { leavesRow } from './trail.ts'

/** The calls of web pages of control that leave audit rows. They are not endpoints of the API. */
const pages = ['GET /auth/sso/callback', 'GET /oidc/interaction']

suite('GET /audit/scenarios', () => {
  test('the list `auditedCalls` contains exactly the calls that leave an audit row', async () => {
    await using app = await startControl()
    const calls = app.app.routes.filter(leavesRow).map((route) => subjectOf(route, {}).action)
    assert.deepEqual([...calls, ...pages].sort(), [...auditedCalls].sort())
  })

  test('GET /audit/scenarios returns the actions of each target type, without duplicates, to every user', async () => {
    await using app = await startControl()
    const { status, body } = await app.as('viewer').get('/audit/scenarios')
    assert.equal(status, 200)
    const actionsOf = Object.fromEntries(
      body.targets.map(({ targetType, actions }: { targetType: string; actions: string[] }) => [targetType, actions]),
    )
    assert.deepEqual(actionsOf['api_key'], ['create', 'delete'])
    for (const call of auditedCalls) {
      const { targetType, action } = scenarioOf(call)
      assert.equal(actionsOf[targetType].filter((each: string) => each === action).length, 1, call)
    }
    assert.equal((await app.as('nobody').get('/audit/scenarios')).status, 401)
  })
})
