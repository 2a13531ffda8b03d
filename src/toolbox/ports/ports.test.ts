import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { suite, test } from 'node:test'
import { startToolbox } from '../testing/toolbox.ts'
import { listeningPorts } from './listening.ts'

const listening = async (host: string) => {
  const server = createServer()
  server.listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    async [Symbol.asyncDispose]() {
      if (server.listening) await new Promise((resolve) => server.close(resolve))
    },
  }
}

suite('GET /port, GET /port/{port}/in-use', () => {
  test('GET /port lists ports with listeners on 127.0.0.1 and on all addresses', async () => {
    await using box = await startToolbox()
    await using local = await listening('127.0.0.1')
    await using open = await listening('0.0.0.0')
    const { status, body } = await box.get('/port')
    assert.equal(status, 200)
    assert.ok(body.ports.includes(local.port) && body.ports.includes(open.port))
  })

  test('GET /port/{port}/in-use says whether a server accepts connections at that port', async () => {
    await using box = await startToolbox()
    const server = await listening('127.0.0.1')
    const ask = () => box.get(`/port/${server.port}/in-use`)
    assert.deepEqual(await ask(), { status: 200, body: { isInUse: true } })
    await server[Symbol.asyncDispose]()
    assert.deepEqual(await ask(), { status: 200, body: { isInUse: false } })
  })

  test('GET /port and GET /port/{port}/in-use answer 409 if the sandbox has stopped, 400 for an invalid port', async () => {
    await using box = await startToolbox()
    for (const port of ['0', '65536', '-1', '1.5', 'http', '1e3']) {
      assert.equal((await box.get(`/port/${port}/in-use`)).status, 400, port)
    }
    await box.native.agent.shutdown(100)
    assert.equal((await box.get('/port/80/in-use')).status, 409)
    assert.equal((await box.get('/port')).status, 409)
  })

  test('`listeningPorts` counts only listening sockets, and each port once', () => {
    const table = `  sl  local_address rem_address   st tx_queue rx_queue
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   2: 0100007F:1F91 0100007F:C001 01 00000000:00000000 00:00000000 00000000     0        0 1 1
cat: /proc/net/tcp6: No such file or directory
   0: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A 00000000:00000000 00:0 0`
    assert.deepEqual(listeningPorts(table), [22, 8080])
    assert.deepEqual(listeningPorts('\n'.repeat(300_000) + table), [])
  })
})
