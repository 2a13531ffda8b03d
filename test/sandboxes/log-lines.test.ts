// Strangers cannot write the log: what they do wrong costs no line, and every line that there is, is structured.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { type Platform, platform } from './harness.ts'

const programs = ['control', 'proxy', 'runner', 'postgres'] as const

suite('the logs of the programs', () => {
  let alcove: Platform
  before(async () => {
    alcove = await platform({ own: true })
  })
  after(async () => {
    await alcove?.[Symbol.asyncDispose]()
  })

  const fileOf = (program: string) => join(alcove.data, 'log', `${program}.log`)
  const linesFrom = (program: string, from: number) =>
    readFileSync(fileOf(program)).subarray(from).toString().split('\n').filter(Boolean)

  /** Sends these bytes and closes at once. */
  const cutOff = async (port: number, bytes: string) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    socket.end(bytes)
    socket.resume()
    await once(socket, 'close')
  }

  test('every line is structured, also those of the start', () => {
    for (const program of programs)
      for (const line of linesFrom(program, 0)) assert.ok('level' in JSON.parse(line), `${program}: ${line}`)
  })

  test('cut-off bodies, bad HTTP and bad upgrades of strangers cost no line', async () => {
    const control = Number(new URL(alcove.url).port)
    const sizes = programs.map((program) => statSync(fileOf(program)).size)
    const post = (path: string, type = 'application/json') =>
      `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nContent-Length: 1000\r\n\r\n{"a`
    const upgrade =
      'GET /toolbox/x/process/pty/p/connect HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
    const form = 'application/x-www-form-urlencoded'
    for (let n = 0; n < 20; n++)
      for (const port of [control, control + 1])
        for (const bytes of [
          ...['/oidc/token', '/oidc/device/auth', '/oidc/auth'].map((path) => post(path, form)),
          ...['/api/sandbox', '/api/api-keys', '/toolbox/x/process/execute', '/nowhere'].map((path) => post(path)),
          ...[upgrade, 'rubbish\r\n\r\n', 'GET /\0 HTTP/1.1\r\n\r\n', 'GET / HTTP/9.9\r\nA: b\r\n\r\n'],
        ])
          await cutOff(port, bytes)
    for (const [index, program] of programs.entries()) {
      const lines = linesFrom(program, sizes[index]!)
      const told = lines.filter((line) => JSON.parse(line).level >= 40)
      assert.deepEqual(told, [], program)
      // Programs of ours may say a word of their own meanwhile.
      assert.ok(lines.length < 10, `${program}: ${lines.slice(0, 10).join('\n')}`)
    }
  })
})
