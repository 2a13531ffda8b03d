// Tests that the memory of our programs for slow readers is limited, and is the same after one second as after many.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, before, suite, test } from 'node:test'
import { type Box, createBox } from './box.ts'
import { type Platform, platform } from './harness.ts'

const readers = 100
const mostGrowthBytes = 50_000_000
const programs = ['runner', 'gate'] as const
/**
 * Seconds for which each command writes 1 MB per second. That is several times what fits into all buffers between command and
 * reader.
 */
const secondsBusy = 6
const busy = `for i in $(seq ${secondsBusy}); do head -c 1000000 /dev/zero; sleep 1; done`

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

suite('readers that are slower than the output', () => {
  let alcove: Platform
  let box: Box
  before(async () => {
    alcove = await platform({ own: true, image: 'small' })
    box = await createBox(alcove)
  })
  after(async () => {
    await alcove?.[Symbol.asyncDispose]()
  })

  const execute = async (session: string, command: string, runAsync: boolean): Promise<string> => {
    const { status, body } = await box.toolbox('POST', `/process/session/${session}/exec`, { command, runAsync })
    assert.equal(status, runAsync ? 202 : 200, JSON.stringify(body))
    return String(body['cmdId'])
  }

  /** A raw socket that has requested a WebSocket and reads nothing: a client library would read everything. */
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

  const memory = async () => Promise.all(programs.map((program) => alcove.memoryOf(program)))

  test(`runner and gate grow by less than 50 MB if ${readers} slow readers follow ${readers} busy commands`, async () => {
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
    // Half of the readers take a little at a time; the other readers take nothing.
    for (const end = Date.now() + (secondsBusy + 2) * 1000; Date.now() < end; await pause(100)) {
      for (const socket of sockets.slice(readers / 2)) {
        takenBytes += (socket.read(Math.min(socket.readableLength, 8192)) as Buffer | null)?.length ?? 0
      }
      for (const [index, bytes] of (await memory()).entries()) most[index] = Math.max(most[index]!, bytes)
    }
    assert.ok(takenBytes > readers * 8192, `${takenBytes} bytes were taken`)
    for (const [index, program] of programs.entries()) {
      const growthBytes = most[index]! - before[index]!
      assert.ok(growthBytes < mostGrowthBytes, `${program} grew by ${growthBytes} bytes`)
    }
    // Check that no reader was disconnected.
    assert.ok(sockets.every(({ destroyed }) => !destroyed))
    for (const socket of sockets) socket.destroy()
  })
})
