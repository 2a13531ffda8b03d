// Tests that mistakes of clients do no harm to the programs of a server. Only this test uses the server.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { type Box, createBox, until } from './box.ts'
import { faultsOf } from './faults-of-clients.ts'
import { type Platform, platform } from './harness.ts'

let alcove: Platform
let box: Box
before(async () => {
  alcove = await platform({ own: true, image: 'small' })
  box = await createBox(alcove)
})
after(async () => {
  await alcove?.[Symbol.asyncDispose]()
})

const readers = 100
const mostGrowthBytes = 50_000_000
const measured = ['runner', 'gate'] as const
/**
 * Each command writes 1 MB per second for this number of seconds. The buffers on the way to the client cannot hold all this output.
 */
const secondsBusy = 6
const busy = `for i in $(seq ${secondsBusy}); do head -c 1000000 /dev/zero; sleep 1; done`

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

suite('readers that are slower than the output', () => {
  const execute = async (session: string, command: string, runAsync: boolean): Promise<string> => {
    const { status, body } = await box.toolbox('POST', `/process/session/${session}/exec`, { command, runAsync })
    assert.equal(status, runAsync ? 202 : 200, JSON.stringify(body))
    return String(body['cmdId'])
  }

  /**
   * Follows a command's log by a WebSocket, and returns the TCP socket without reading from it. A WebSocket library would read
   * everything.
   */
  const follow = async (session: string, commandId: string): Promise<Socket> => {
    const { hostname, port, pathname } = new URL(String(box.record['toolboxProxyUrl']))
    const socket = connect(Number(port), hostname)
    const path = `${pathname}/${box.id}/process/session/${session}/command/${commandId}/logs?follow=true`
    const headers = [
      `Host: ${hostname}:${port}`,
      `Authorization: Bearer ${alcove.key}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      `Sec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}`,
    ]
    socket.write(`GET ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`)
    await once(socket, 'readable')
    assert.match(String(socket.read(12)), /^HTTP\/1.1 101/)
    return socket
  }

  const memory = async () => Promise.all(measured.map((program) => alcove.memoryOf(program)))

  test('slow readers of the output of busy commands add less than 50 MB to the memory of gate and runner', async () => {
    const sessions = Array.from({ length: readers }, (_, index) => `session-${index}`)
    for (const sessionId of sessions) {
      assert.equal((await box.toolbox('POST', '/process/session', { sessionId })).status, 201)
      const quick = await execute(sessionId, 'echo ready', false)
      const socket = await follow(sessionId, quick)
      socket.destroy()
    }
    const before = await memory()
    const sockets: Socket[] = []
    for (const session of sessions) sockets.push(await follow(session, await execute(session, busy, true)))
    const most = [...before]
    let takenBytes = 0
    // Half of the clients read a little from time to time. The remaining clients read nothing.
    for (const end = Date.now() + (secondsBusy + 2) * 1000; Date.now() < end; await pause(100)) {
      for (const socket of sockets.slice(readers / 2)) {
        takenBytes += (socket.read(Math.min(socket.readableLength, 8192)) as Buffer | null)?.length ?? 0
      }
      for (const [index, bytes] of (await memory()).entries()) most[index] = Math.max(most[index]!, bytes)
    }
    assert.ok(takenBytes > readers * 8192, `${takenBytes} bytes were taken`)
    for (const [index, program] of measured.entries()) {
      const growthBytes = most[index]! - before[index]!
      assert.ok(growthBytes < mostGrowthBytes, `${program} grew by ${growthBytes} bytes`)
    }
    // The gate must still be connected to every slow client.
    assert.ok(sockets.every(({ destroyed }) => !destroyed))
    for (const socket of sockets) socket.destroy()
  })
})

const programs = ['control', 'gate', 'runner', 'postgres', 'ssh-gateway'] as const
const warning = 40

/** Two servers in the sandbox: one answers with bytes that are not HTTP, the other closes each connection without an answer. */
const badServers = `python3 - <<'END' >/dev/null 2>&1 &
import socket, threading
def serve(port, answer):
    server = socket.create_server(('', port))
    while True:
        caller, _ = server.accept()
        caller.recv(1000); caller.send(answer); caller.close()
threading.Thread(target=serve, args=(3001, b'SSH-2.0-x\\r\\n')).start()
serve(3002, b'')
END
head -c 50000000 /dev/zero > /tmp/large`

suite('the logs of the programs', () => {
  before(async () => {
    await box.run(badServers)
  })

  const fileOf = (program: string) => join(alcove.data, 'log', `${program}.log`)
  const linesFrom = (program: string, from: number) =>
    readFileSync(fileOf(program)).subarray(from).toString().split('\n').filter(Boolean)
  const sizes = () => programs.map((program) => statSync(fileOf(program)).size)

  test('every line in the logs of the programs, from the first line on, is JSON with a level', () => {
    for (const program of programs)
      for (const line of linesFrom(program, 0)) assert.ok('level' in JSON.parse(line), `${program}: ${line}`)
  })

  test('no mistake of a client causes a warning, or more than five lines, in the logs of the programs', async () => {
    // The server's first OpenID call logs a warning about this version of Node. No client causes this warning, so make the OpenID
    // call before the mistakes.
    await fetch(`${alcove.url}/oidc/.well-known/openid-configuration`)
    const wrong: string[] = []
    let from = sizes()
    const faults = faultsOf(alcove, box)
    /**
     * Checks the lines that were logged since the last check, which the mistake `what` has caused. A line that comes too late
     * counts for the next mistake.
     */
    const look = (what: string, most = 5) => {
      for (const [index, program] of programs.entries()) {
        const lines = linesFrom(program, from[index]!)
        const told = lines.filter((line) => JSON.parse(line).level >= warning)
        if (told.length > 0 || lines.length > most) wrong.push(`${what}: ${program}: ${lines.slice(0, 5).join('\n')}`)
      }
      from = sizes()
    }
    for (const [what, commit] of faults) {
      await commit()
      look(what)
    }
    // The server must still answer. Lines about the last mistake may have come late, so look at the logs again.
    assert.equal((await alcove.api('GET', '/sandbox')).status, 200)
    await until('the sandbox answers', async () => (await box.toolbox('GET', '/user-home-dir')).status === 200)
    look('the end')
    assert.equal(wrong.length, 0, wrong.join('\n\n'))
  })
})
