import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { suite, test } from 'node:test'
import { WebSocket } from 'ws'
import { notStarted, Problem } from '#src/problems.ts'
import { accepted } from './testing/accepted.ts'
import { startSides } from './testing/simulated.ts'

const bearer = { authorization: 'Bearer key-1' }

/**
 * Requests an upgrade to a WebSocket with headers of the test's choice. A WebSocket library would choose some of them
 * itself.
 */
const handMade = (port: number, path: string, headers: Record<string, string>) =>
  request({ port, path, headers: { ...headers, connection: 'Upgrade', upgrade: 'websocket' } }).end()

suite('refused WebSockets', () => {
  const terminals = ['/toolbox/box/process/pty/create-connect?id=a', '/toolbox/box/process/pty/a/connect']
  const interpreter = '/toolbox/box/process/interpreter/execute'
  const followedLogs = '/toolbox/box/process/session/s/command/c/logs?follow=true'

  /** Opens a WebSocket and immediately sends a message. Returns the last message received, and code and reason of the close. */
  const converse = async (
    port: number,
    path: string,
    headers: Record<string, string>,
    { says = '{"code":"1"}', protocol = 'X-Daytona-Pty-Exit-Control' } = {},
  ) => {
    const client = new WebSocket(`ws://127.0.0.1:${port}${path}`, [protocol], { headers })
    client.once('open', () => client.send(says))
    const closed = once(client, 'close')
    const [message] = await once(client, 'message')
    const [code, reason] = await closed
    return { said: JSON.parse(String(message)), code, reason: String(reason) }
  }

  test('a call for a terminal or interpreter of a sandbox that is not started gets 101 and then the error', async () => {
    await using sides = await startSides()
    for (const state of ['stopped', 'archived', 'error']) {
      sides.control.answer = () => sides.access({ isStarted: false, state })
      const sentence = `The sandbox is not started: it is ${state}. Is the Sandbox started?`
      for (const path of terminals) {
        const { said, code, reason } = await converse(sides.port, path, bearer)
        assert.deepEqual(said, { type: 'control', status: 'error', error: sentence })
        assert.deepEqual([code, JSON.parse(reason)], [1011, { error: sentence }])
      }
      const { said, code, reason } = await converse(sides.port, interpreter, bearer)
      assert.deepEqual(said, { type: 'error', name: 'InterpreterUnavailable', value: sentence, traceback: '' })
      assert.deepEqual([code, reason], [1011, sentence])
    }
    assert.equal(sides.seen.length, 0)
  })

  test('if control does not know yet that a sandbox stopped, a call for a terminal gets 101, then the error', async () => {
    await using sides = await startSides()
    sides.toolbox.refusal = notStarted()
    for (const path of [...terminals, interpreter]) {
      const { said, code } = await converse(sides.port, path, bearer)
      assert.match(said.error ?? said.value, /Is the Sandbox started\?$/)
      assert.equal(code, 1011)
    }
  })

  for (const [who, more, offer] of [
    ['an SDK', { 'x-daytona-sdk-version': '0.216.0' }, {}],
    ['an SDK that sets no headers', {}, { protocol: 'X-Daytona-SDK-Version~0.216.0' }],
    ['a browser', { origin: 'http://page.test' }, {}],
  ] as const) {
    test(`${who} that opens a terminal or interpreter is told after the upgrade why the gate refuses`, async () => {
      await using sides = await startSides()
      const headers = { ...bearer, ...more }
      for (const [status, sentence] of [
        [401, 'no such key'],
        [403, 'not yours'],
        [404, 'Sandbox with ID or name box not found'],
        [410, 'it expired'],
        [429, 'too often'],
        [500, 'control does not answer'],
      ] as const) {
        sides.control.answer = () => ({ status, body: { message: sentence } })
        for (const path of [...terminals, interpreter]) {
          const { said, code } = await converse(sides.port, path, headers, offer)
          assert.ok((said.error ?? said.value).startsWith(status === 500 ? 'The control service' : sentence))
          assert.equal(code, 1011)
        }
      }
      sides.control.answer = () => sides.access()
      sides.toolbox.refusal = new Problem('rate_limited', 'This sandbox has too many terminals.')
      const { said } = await converse(sides.port, terminals[0]!, headers, offer)
      assert.match(said.error, /^This sandbox has too many terminals/)
    })
  }

  test('a refused WebSocket caller that first sends 3 MiB still gets the reason for the refusal', async () => {
    await using sides = await startSides()
    sides.control.answer = () => sides.access({ isStarted: false, state: 'stopped' })
    const { code, reason } = await converse(sides.port, interpreter, bearer, {
      says: 'x'.repeat(3 * 1024 * 1024),
    })
    assert.deepEqual([code, reason.slice(0, 26)], [1011, 'The sandbox is not started'])
  })

  test('a refused WebSocket that its caller keeps open is closed after a time limit', async () => {
    await using sides = await startSides({ lingerMs: 20 })
    sides.control.answer = () => sides.access({ isStarted: false, state: 'stopped' })
    const caller = connect({ port: sides.port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => undefined)
    try {
      caller.write(
        `GET ${interpreter} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer key-1\r\nConnection: Upgrade\r\n` +
          'Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
      )
      const socket = await accepted(sides.port)
      if (!socket.destroyed) await once(socket, 'close')
    } finally {
      caller.destroy()
    }
  })

  test('a refused WebSocket gets a plain HTTP error if it is a log stream, or its client shows HTTP errors', async () => {
    await using sides = await startSides()
    const statusOf = async (path: string, headers: Record<string, string>) => {
      const client = new WebSocket(`ws://127.0.0.1:${sides.port}${path}`, { headers })
      client.on('error', () => undefined)
      const [, answer] = await once(client, 'unexpected-response')
      client.terminate()
      return answer.statusCode
    }
    const sdk = { ...bearer, 'x-daytona-sdk-version': '0.216.0' }
    sides.control.answer = () => sides.access({ isStarted: false, state: 'stopped' })
    assert.equal(await statusOf(followedLogs, sdk), 409)
    const [raw] = await once(handMade(sides.port, interpreter, sdk), 'response')
    assert.equal(raw.statusCode, 409)
    sides.control.answer = () => ({ status: 404, body: { message: 'none' } })
    for (const path of [...terminals, interpreter]) assert.equal(await statusOf(path, bearer), 404)
    assert.equal(await statusOf('/toolbox/box/x', sdk), 404)
  })
})
