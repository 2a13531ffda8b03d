// Mistakes of clients with the toolbox's WebSockets, through the gate to a real sandbox. Each mistake gets the documented answer,
// and other clients notice nothing.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Daytona, Sandbox } from '@daytona/sdk'
import { WebSocket } from 'ws'
import { type Box, boxOf, until } from './box.ts'
import { type Platform, platform } from './harness.ts'
import { Screen } from './screen.ts'
import { connectTo } from './sdk-client.ts'

const execute = '/process/interpreter/execute'
const tooLarge = 10 * 1024 * 1024

suite('mistakes of clients with sockets', () => {
  let alcove: Platform
  let daytona: Daytona
  let sandbox: Sandbox
  let box: Box
  /** Path below the sandbox's toolbox at which a WebSocket gets the log of a command that runs and waits for input. */
  let logs: string
  before(async () => {
    alcove = await platform()
    daytona = connectTo(alcove)
    sandbox = await daytona.create()
    box = boxOf(alcove, (await alcove.api('GET', `/sandbox/${sandbox.id}`)).body)
    await sandbox.process.createSession('s')
    const { cmdId } = await sandbox.process.executeSessionCommand('s', {
      command: 'read x; echo "got $x"',
      runAsync: true,
    })
    logs = `/process/session/s/command/${cmdId}/logs?follow=true`
    await box.toolbox('POST', '/process/pty', { id: 'p' })
  })
  after(async () => {
    await sandbox?.delete()
    await daytona?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  const socketTo = (path: string) =>
    new WebSocket(`${String(box.record['toolboxProxyUrl']).replace('http', 'ws')}/${box.id}${path}`, {
      headers: { authorization: `Bearer ${alcove.key}` },
    })

  type End = { status?: number; code?: number; heard: string }

  /** Opens a WebSocket and sends `frames`. Returns how the WebSocket was closed, and all messages that the client has received. */
  const endOf = (path: string, ...frames: (string | Buffer)[]): Promise<End> =>
    new Promise((resolve) => {
      const socket = socketTo(path)
      let heard = ''
      socket.on('message', (data) => {
        heard += data
      })
      socket.on('open', () => {
        for (const frame of frames) socket.send(frame)
      })
      socket.on('error', () => undefined)
      socket.on('unexpected-response', (_, answer) => {
        answer.resume()
        resolve({ status: answer.statusCode ?? 0, heard })
      })
      socket.on('close', (code) => resolve({ code, heard }))
    })

  test('a WebSocket to an unknown session gets 404, but one to an unknown terminal opens and gets an error', async () => {
    for (const path of [
      '/process/session/nobody/command/x/logs?follow=true',
      '/process/session/s/command/x/logs?follow=true',
      '/process/session/entrypoint/command/x/logs?follow=true',
      '/process/nothing',
    ])
      assert.equal((await endOf(path)).status, 404, path)
    const { code, heard } = await endOf('/process/pty/nobody/connect')
    assert.equal(code, 1011)
    assert.match(heard, /^\{"type":"control","status":"error","error":"[^"]*no PTY session/)
  })

  test('the toolbox answers 400 to an upgrade of a path without WebSocket, or a GET of a WebSocket’s path', async () => {
    for (const path of ['/process/session', '/process/pty/p', '/files?path=/', '/work-dir'])
      assert.equal((await endOf(path)).status, 400, path)
    for (const path of [execute, '/process/pty/p/connect', '/process/pty/create-connect?id=q'])
      assert.equal((await box.toolbox('GET', path)).status, 400, path)
  })

  test('every toolbox WebSocket closes with 1009 after a frame above 4 MiB, even if the client keeps sending', async () => {
    for (let round = 0; round < 5; round++)
      for (const path of [execute, logs, '/process/pty/p/connect'])
        assert.equal((await endOf(path, Buffer.alloc(tooLarge, 'x').toString())).code, 1009, path)
  })

  test('the interpreter’s WebSocket closes with 1002 if its first frame is binary, and ignores later frames', async () => {
    assert.equal((await endOf(execute, Buffer.from('{"code":"print(1)"}'))).code, 1002)
    const { code, heard } = await endOf(execute, '{"code":"print(1)"}', '{"code":"print(2)"}', Buffer.of(1, 2, 3))
    assert.equal(code, 1000)
    assert.match(heard, /"text":"1\\n"/)
    assert.doesNotMatch(heard, /"text":"2\\n"/)
  })

  test('a log’s WebSocket ignores all input; a terminal’s WebSocket passes all input to the shell, even JSON', async () => {
    const ending = endOf(logs, '{"type":"control","status":"stop"}', Buffer.of(1, 1, 1, 120))
    const screen = new Screen()
    const socket = socketTo('/process/pty/p/connect')
    socket.on('message', (data: Buffer, isBinary) => isBinary && screen.take(data))
    socket.on('open', () => {
      socket.send('echo \'{"type":"control","status":"exited","exitCode":0}\' | tr a-z A-Z\n')
    })
    await screen.shows(/\{"TYPE":"CONTROL","STATUS":"EXITED","EXITCODE":0\}/)
    socket.close()
    assert.equal((await box.toolbox('GET', '/process/pty/p')).body['active'], true)
    assert.equal((await box.toolbox('POST', logs.replace('/logs?follow=true', '/input'), { data: 'word' })).status, 204)
    const { code, heard } = await ending
    assert.equal(code, 1000)
    assert.match(heard, /got word/)
  })

  test('of 20 simultaneous calls that create the same session or terminal, one succeeds, and 19 answer 409', async () => {
    const opened = await Promise.all(
      Array.from({ length: 20 }, () => box.toolbox('POST', '/process/session', { sessionId: 'once' })),
    )
    assert.deepEqual(opened.map(({ status }) => status).sort(), [201, ...Array(19).fill(409)])
    const made = await Promise.all(
      Array.from({ length: 20 }, () => box.toolbox('POST', '/process/pty', { id: 'once' })),
    )
    assert.deepEqual(made.map(({ status }) => status).sort(), [201, ...Array(19).fill(409)])
    assert.match((await endOf('/process/pty/create-connect?id=once')).heard, /"status":"error".*already exists/)
    await box.toolbox('DELETE', '/process/pty/once')
  })

  test('the WebSocket of a new terminal answers 400 for an invalid size, and refuses bad and reserved ids', async () => {
    for (const query of ['id=q&cols=1001', 'id=q&rows=0', 'id=q&cols=x', 'id=a&id=b'])
      assert.equal((await endOf(`/process/pty/create-connect?${query}`)).status, 400, query)
    for (const id of ['create-connect', '..', '', 'a%2Fb']) {
      const { status, heard } = await endOf(`/process/pty/create-connect?id=${id}`)
      assert.ok(status === 400 || /"status":"error"/.test(heard), `${id}: ${status} ${heard}`)
    }
    for (const sessionId of ['entrypoint', '..', 'a/b', ''])
      assert.equal((await box.toolbox('POST', '/process/session', { sessionId })).status, 400, sessionId)
  })

  test('a character of several bytes that is split over two frames arrives whole, as input and as output', async () => {
    const screen = new Screen()
    const pty = await sandbox.process.createPty({ id: 'cut', onData: screen.take })
    for (const byte of Buffer.from('echo "<grüß €>" | tr e E\n')) await pty.sendInput(Uint8Array.of(byte))
    await screen.shows(/\r\n(?:.*\r)?<grüß €>/)
    await pty.kill()
    await sandbox.process.createSession('cut')
    const command = 'for b in 342 202 254 360 237 246 212; do printf "\\\\$b"; sleep 0.03; done; printf \'\\377\''
    const { cmdId } = await sandbox.process.executeSessionCommand('cut', { command, runAsync: true })
    let followed = ''
    await sandbox.process.getSessionCommandLogs(
      'cut',
      cmdId,
      (text) => {
        followed += text
      },
      () => {},
    )
    assert.equal(followed, '€🦊\uFFFD')
  })

  test('if 100 WebSockets follow the logs of 100 running commands, each receives all output of its command', async () => {
    const ids = Array.from({ length: 100 }, (_, i) => `many-${i}`)
    await Promise.all(ids.map((sessionId) => box.toolbox('POST', '/process/session', { sessionId })))
    const whole = Array.from({ length: 20_000 }, (_, i) => `${i + 1}\n`).join('')
    await Promise.all(
      ids.map(async (id) => {
        const exec = { command: 'seq 1 20000', runAsync: true }
        const { body } = await box.toolbox('POST', `/process/session/${id}/exec`, exec)
        const socket = socketTo(`/process/session/${id}/command/${body['cmdId']}/logs?follow=true`)
        const pieces: Buffer[] = []
        socket.on('message', (data: Buffer) => pieces.push(data.subarray(3)))
        const code = await new Promise((resolve) => socket.on('close', resolve))
        assert.deepEqual([code, Buffer.concat(pieces).toString() === whole], [1000, true], id)
      }),
    )
    await Promise.all(ids.map((id) => box.toolbox('DELETE', `/process/session/${id}`)))
    await until('none of them', async () =>
      (await sandbox.process.listSessions()).every(({ sessionId }) => !sessionId.startsWith('many-')),
    )
  })
})
