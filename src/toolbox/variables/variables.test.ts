import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import type { VariableChange } from '#src/wire/access.ts'
import { environmentOf, inheritedBy } from '../agent/environment.ts'
import { createToolboxServer } from '../server.ts'
import { assignmentWith } from '../testing/assignment.ts'
import { calledFor } from '../testing/called.ts'

const ask = async (path: string, payload: unknown) => {
  const changes: VariableChange[] = []
  const sandbox = { id: 'box', assignment: assignmentWith({}), status: 'started', socketPath: '/nowhere' } as const
  const server = await createToolboxServer({
    calledBy: () => calledFor(sandbox, { changeVariables: async (change) => void changes.push(change) }),
    executeTimeoutSeconds: 10,
    log: silentLog(),
  })
  const headers = { 'content-type': 'application/json' }
  const answer = await server.inject({
    method: 'POST',
    url: `/toolbox/box${path}`,
    headers,
    payload: JSON.stringify(payload),
  })
  return { status: answer.statusCode, body: answer.json(), changes }
}

suite('POST /env', () => {
  test('POST /env changes the variables and then answers 200; a missing or null field changes nothing', async () => {
    const { status, body, changes } = await ask('/env', {
      set: { A: '' },
      unset: ['image.name'],
      unsetValuePrefix: 'p-',
    })
    assert.deepEqual([status, Object.keys(body)], [200, ['message']])
    assert.deepEqual(changes, [{ set: { A: '' }, unset: ['image.name'], unsetValuePrefix: 'p-' }])
    for (const empty of [{ set: {} }, { set: null, unset: null, unsetValuePrefix: '' }]) {
      assert.deepEqual((await ask('/env', empty)).changes, [{ set: {}, unset: [] }])
    }
  })

  test('POST /env answers 400 for an invalid value, an empty name or too many names, and changes nothing', async () => {
    for (const wrong of [
      { set: { A: null } },
      { set: { A: 1 } },
      { set: { A: 'x\0' } },
      { set: [] },
      { unset: [''] },
      { unset: 'A' },
      { unset: Array.from({ length: 1001 }, () => 'A') },
      { set: Object.fromEntries(Array.from({ length: 1001 }, (_, n) => [`N${n}`, ''])) },
      null,
      {},
      { sets: { A: '1' } },
    ]) {
      const { status, changes } = await ask('/env', wrong)
      assert.deepEqual([status, changes], [400, []], JSON.stringify(wrong))
    }
  })
})

suite('POST /init', () => {
  test('POST /init answers 200 for a call with a token, 400 for a call without a token, and changes nothing', async () => {
    const { status, body, changes } = await ask('/init', { token: 'any' })
    assert.deepEqual([status, typeof body.message, changes], [200, 'string', []])
    for (const wrong of [{}, { token: '' }, { token: null }]) assert.equal((await ask('/init', wrong)).status, 400)
  })
})

suite('the environment of a process in a sandbox', () => {
  const known = (env: Record<string, string>, unsetEnv: string[] = []) => ({
    assignment: assignmentWith({ env, unsetEnv }),
  })

  test('variables of a call override those of the sandbox, which override Alcove’s variable IS_SANDBOX', () => {
    const environment = environmentOf(
      known({ A: 'sandbox', B: 'image', IS_SANDBOX: '2' }, ['B', 'DAYTONA_REGION_ID']),
      {
        A: 'call',
        DAYTONA_REGION_ID: 'mine',
      },
    )
    const { A, B, IS_SANDBOX, DAYTONA_REGION_ID } = environment
    assert.deepEqual([A, B, IS_SANDBOX, DAYTONA_REGION_ID], ['call', undefined, '2', 'mine'])
  })

  test('`inheritedBy` returns variables of the image and Alcove’s own, but none that users set', () => {
    const { assignment } = known({ A: '1' })
    assert.deepEqual(Object.keys(inheritedBy(assignment, { LANG: 'C' })).sort(), [
      'DAYTONA_ORGANIZATION_ID',
      'DAYTONA_REGION_ID',
      'DAYTONA_SANDBOX_ID',
      'DAYTONA_SANDBOX_SNAPSHOT',
      'DAYTONA_SANDBOX_USER',
      'IS_SANDBOX',
      'LANG',
    ])
  })
})
