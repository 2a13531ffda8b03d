// Makes each call that the published Daytona SDKs can make, without a credential, and checks that the server knows the
// call.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { silentLog } from '#src/kit/log.ts'
import { Problem } from '#src/problems.ts'
import { createToolboxServer } from '#src/toolbox/server.ts'
import { startControl } from '#test/control/harness.ts'
import { type Operation, operationsOf } from './clients.ts'

/** Lists the calls that the server does not know. The server answers them as it answers a call with a wrong URL. */
const unknownTo = async (server: FastifyInstance, prefix: string, operations: readonly Operation[]) => {
  const unknown: string[] = []
  for (const { call } of operations) {
    const [method = '', path = ''] = call.split(' ')
    const url = `${prefix}${path.replaceAll('{}', '1')}`
    const { body } = await server.inject({ method: method as 'GET', url })
    if (body.includes(`There is no ${method} `)) unknown.push(call)
  }
  return unknown
}

suite('control and the toolbox serve each call of the published SDKs, or answer why they do not', () => {
  test('control serves each call of the public API client, or answers 404 with the reason', async () => {
    await using app = await startControl()
    assert.deepEqual(await unknownTo(app.app.server, '/api', operationsOf('api-client')), [])
    const { status, body } = await app.as('owner').get('/runners/me')
    assert.deepEqual(
      [status, body.message],
      [
        404,
        'Alcove does not serve GET /api/runners/me. It is for runners of the public service. Runners of Alcove have a connection of their own. (not found)',
      ],
    )
  })

  test('the toolbox serves each call of the public toolbox client, or answers 404 with the reason', async () => {
    const calledBy = () => {
      throw new Problem('unauthorized')
    }
    const server = await createToolboxServer({ calledBy, executeTimeoutSeconds: 10, log: silentLog() })
    assert.deepEqual(await unknownTo(server, '/toolbox/box', operationsOf('toolbox-api-client')), [])
    await server.close()
  })
})
