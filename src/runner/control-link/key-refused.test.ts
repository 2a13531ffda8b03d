import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { ControlClient } from './control-client.ts'
import { KeyRefusal, refusedAfterMs } from './key-refused.ts'

/** Makes a `KeyRefusal` and records what it reports. Its clock moves only when the test moves it. */
const listen = () => {
  const told: boolean[] = []
  let now = 0
  const refusal = new KeyRefusal(
    (isRefused) => told.push(isRefused),
    () => now,
  )
  const hears = (status: number | undefined, laterMs = 0) => {
    now += laterMs
    refusal.heard(status)
  }
  return { told, hears }
}

suite('detecting that control refuses the runner’s key', () => {
  test('a runner’s key counts as refused after control gave only 401 answers for a minute', () => {
    const { told, hears } = listen()
    hears(200)
    hears(401)
    hears(401, refusedAfterMs - 1)
    assert.deepEqual(told, [])
    hears(401, 1)
    hears(401, 5000)
    assert.deepEqual(told, [true])
  })

  test('a runner’s key does not count as refused if any other result comes between 401 answers', () => {
    for (const status of [200, 404, 429, 500, 503, undefined]) {
      const { told, hears } = listen()
      hears(401)
      hears(status, refusedAfterMs - 1)
      hears(401, 1)
      hears(401, refusedAfterMs - 1)
      assert.deepEqual(told, [], String(status))
    }
  })

  test('a refused key counts as accepted again after a 200 answer, but not after a 503 or a failed request', () => {
    const { told, hears } = listen()
    hears(401)
    hears(401, refusedAfterMs)
    hears(503)
    hears(undefined)
    assert.deepEqual(told, [true])
    hears(200)
    assert.deepEqual(told, [true, false])
  })

  test('`onAnswer` gets the HTTP status of control’s answer, or undefined if control cannot be reached', async () => {
    const control = createServer((_request, response) => response.writeHead(401).end('{}'))
    await once(control.listen(0, '127.0.0.1'), 'listening')
    const controlUrl = new URL(`http://127.0.0.1:${(control.address() as AddressInfo).port}`)
    const heard: (number | undefined)[] = []
    await using client = new ControlClient({
      controlUrl,
      credential: { headers: {} },
      log: silentLog(),
      onAnswer: (status) => heard.push(status),
    })
    await assert.rejects(client.list(), /401/)
    await assert.rejects(client.tell({ sandboxId: 'box', generation: 1, state: 'started' }), /401/)
    control.closeAllConnections()
    await new Promise((resolve) => control.close(resolve))
    await assert.rejects(client.list())
    assert.deepEqual(heard, [401, 401, undefined])
  })
})
