import assert from 'node:assert/strict'
import { on, once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { suite, test } from 'node:test'
import type { Access, AccessQuestion } from '#src/wire/access.ts'
import { AccessDesk } from './access.ts'

const question: AccessQuestion = {
  sandboxIdOrName: 'box',
  credentials: [{ kind: 'bearer', token: 'key-1' }],
  countsAsActivity: true,
}

const yes: Omit<Access, 'isBearerOurs' | 'warnsVisitors'> = {
  ticket: 'signed by control',
  sandboxId: 'box',
  organizationId: 'org',
  runnerAddress: 'unix:/x',
  isStarted: true,
  state: 'started',
  openedBy: 'bearer',
}

suite('how the gate asks control whether a call is allowed', () => {
  test('if control answers slowly, calls within a second share one request to control; later calls do not', async (t) => {
    const control = createServer().listen(0, '127.0.0.1')
    await once(control, 'listening')
    const calls = on(control, 'request')
    const asked = async (): Promise<ServerResponse> => (await calls.next()).value?.[1]
    const { port } = control.address() as AddressInfo
    const desk = new AccessDesk({
      controlUrl: new URL(`http://127.0.0.1:${port}`),
      credential: { headers: { authorization: 'Bearer key' } },
    })
    try {
      let now = performance.now()
      t.mock.method(performance, 'now', () => now)
      const first = desk.ask(question)
      const firstAnswer = await asked()
      now += 900
      const joined = desk.ask(question)
      now += 200
      const later = assert.rejects(desk.ask(question), { code: 'unauthorized' })
      const laterAnswer = await asked()
      firstAnswer.end(JSON.stringify(yes))
      assert.deepEqual(
        (await Promise.all([first, joined])).map(({ sandboxId }) => sandboxId),
        ['box', 'box'],
      )
      laterAnswer.writeHead(401).end('{}')
      await later
    } finally {
      await desk[Symbol.asyncDispose]()
      control.closeAllConnections()
      control.close()
    }
  })
})
