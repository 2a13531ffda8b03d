import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { suite, test } from 'node:test'
import type { WebSocket } from 'ws'
import { inputWindowBytes } from '#src/wire/ssh.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import { assignmentWith } from '../testing/assignment.ts'
import { startToolbox, type Toolbox } from '../testing/toolbox.ts'
import { serveCommand } from './command.ts'

type Ended = { out: Buffer; err: Buffer; told: Record<string, unknown>[]; code: number }

/** Follows a command to its end. Calls `onTold` with each text message when it arrives. */
const follow = async (
  socket: WebSocket,
  onTold: (told: Record<string, unknown>) => void = () => {},
): Promise<Ended> => {
  const out: Buffer[] = []
  const err: Buffer[] = []
  const told: Record<string, unknown>[] = []
  socket.on('message', (data: Buffer, isBinary: boolean) => {
    if (isBinary) return void (data[0] === 1 ? out : err).push(data.subarray(1))
    const message = JSON.parse(data.toString())
    told.push(message)
    onTold(message)
  })
  const [code] = await once(socket, 'close')
  return { out: Buffer.concat(out), err: Buffer.concat(err), told, code }
}

const say = (socket: WebSocket, message: object) => socket.send(JSON.stringify(message))

const open = async (box: Toolbox, path = '/ssh/command') => {
  const socket = box.socket(path)
  await once(socket, 'open')
  return socket
}

const start = async (box: Toolbox, run: object, more: object = {}) => {
  const socket = await open(box)
  say(socket, { type: 'start', run, env: {}, ...more })
  return socket
}

const exec = (box: Toolbox, command: string, more: object = {}) => start(box, { kind: 'exec', command }, more)

suite('GET /ssh/command', () => {
  test('GET /ssh/command returns stdout, stderr and exit code separately, and passes on the end of the input', async () => {
    await using box = await startToolbox()
    const socket = await exec(box, 'cat; echo "$GREETING" >&2; exit 7', { env: { GREETING: 'hello' } })
    const { out, err, told, code } = await follow(socket, ({ type }) => {
      if (type !== 'started') return
      socket.send(Buffer.from([0, 255, 10]))
      say(socket, { type: 'eof' })
    })
    assert.deepEqual([[...out], err.toString(), code], [[0, 255, 10], 'hello\n', 1000])
    assert.deepEqual(told.at(-1), { type: 'exit', code: 7 })
  })

  test('GET /ssh/command passes a signal to its command, and reports which signal ended the command', async () => {
    await using box = await startToolbox()
    const socket = await exec(box, 'exec sleep 60')
    const { told } = await follow(socket, ({ type }) => {
      if (type === 'started') say(socket, { type: 'signal', signal: 'TERM' })
    })
    assert.deepEqual(told.at(-1), { type: 'exit', code: 143, signal: 'TERM' })
  })

  test('GET /ssh/command allows more input once its command has read some; too much input closes with 1008', async () => {
    await using box = await startToolbox()
    const piece = Buffer.alloc(64 * 1024)
    const reading = await exec(box, 'wc -c')
    let credit = 256 * 1024
    let left = 40
    const send = () => {
      for (; left > 0 && credit >= piece.length; left -= 1) {
        reading.send(piece)
        credit -= piece.length
      }
      if (left === 0) say(reading, { type: 'eof' })
    }
    const { out } = await follow(reading, ({ type, bytes }) => {
      if (type === 'credit') credit += Number(bytes)
      if (type === 'started' || (type === 'credit' && left > 0)) send()
    })
    assert.equal(Number(out.toString()), 40 * piece.length)

    const idle = await exec(box, 'exec sleep 60')
    const { code } = await follow(idle, ({ type }) => {
      if (type === 'started') for (let sent = 0; sent < 40; sent += 1) idle.send(piece)
    })
    assert.equal(code, 1008)
  })

  test('GET /ssh/command accepts a whole window of input that its command does not read, and not one byte more', async () => {
    const socket = Object.assign(new EventEmitter(), {
      OPEN: 1,
      readyState: 1,
      send: (data: string, done: () => void) => {
        socket.emit('sent', JSON.parse(data))
        done()
      },
      close: (code: number) => socket.emit('closed', code),
    })
    const written: number[] = []
    const never = new Promise<never>(() => undefined)
    const command = {
      exit: never,
      write: (data: Buffer) => written.push(data.length),
      [Symbol.asyncIterator]: () => ({ next: () => never }),
    }
    const sandbox = { id: 'box', assignment: assignmentWith({}), agent: { exec: async () => command } }
    const started = once(socket, 'sent')
    void serveCommand(socket as unknown as WebSocket, sandbox as unknown as ToolboxSandbox)
    const start = JSON.stringify({ type: 'start', run: { kind: 'exec', command: 'x' }, env: {} })
    socket.emit('message', Buffer.from(start), false)
    assert.deepEqual(await started, [{ type: 'started' }])
    const codes: number[] = []
    socket.on('closed', (code) => codes.push(code))
    socket.emit('message', Buffer.alloc(inputWindowBytes), true)
    assert.deepEqual([written, codes], [[inputWindowBytes], []])
    socket.emit('message', Buffer.alloc(1), true)
    assert.deepEqual([written, codes], [[inputWindowBytes], [1008]])
  })

  test('GET /ssh/command runs a command in a terminal of the requested size and TERM, and can resize it', async () => {
    await using box = await startToolbox()
    const terminal = { cols: 91, rows: 33, term: 'vt220' }
    const script = 'stty size; echo "$TERM"; read -r _; stty size; exit 3'
    const socket = await exec(box, script, { terminal })
    let shown = ''
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      if (!isBinary || shown.includes('vt220')) return
      shown += data.subarray(1).toString()
      if (!shown.includes('vt220')) return
      say(socket, { type: 'resize', cols: 50, rows: 20 })
      socket.send(Buffer.from('\n'))
    })
    const { out, told } = await follow(socket)
    assert.match(out.toString(), /^33 91\r\nvt220\r\n[\s\S]*20 50\r\n/)
    assert.deepEqual(told.at(-1), { type: 'exit', code: 3 })
  })

  test('a command of GET /ssh/command gets SIGHUP when its caller disconnects, with pipes or in a terminal', async () => {
    await using box = await startToolbox()
    for (const more of [{}, { terminal: { cols: 80, rows: 24, term: 'xterm' } }]) {
      const witness = `${box.directory}/hung-up-${Object.keys(more).length}`
      const socket = await exec(
        box,
        `trap 'echo hup >${witness}; exit' HUP; echo ready; while :; do sleep 0.05; done`,
        more,
      )
      await new Promise<void>((resolve) => {
        socket.on('message', (data: Buffer, isBinary: boolean) => {
          if (isBinary && data.includes('ready')) resolve()
        })
      })
      socket.close()
      const seen = await exec(box, `until [ -s ${witness} ]; do sleep 0.05; done; cat ${witness}`)
      assert.equal((await follow(seen)).out.toString(), 'hup\n')
    }
  })

  test('GET /ssh/command sends the reason if its command cannot be started', async () => {
    await using box = await startToolbox({ user: 'nobody-here' })
    const { told, code } = await follow(await exec(box, 'true'))
    assert.match(String(told[0]?.['message']), /does not exist in this sandbox/)
    assert.equal(code, 1011)
    await using other = await startToolbox()
    const wrong = await follow(await exec(other, 'true', { env: { 'A=B': 'x' } }))
    assert.match(String(wrong.told[0]?.['message']), /not a valid name/)
  })

  test('GET /ssh/command closes with 1008 if the first message is not a valid start message', async () => {
    await using box = await startToolbox()
    const wrong: string[] = [
      'x',
      '[]',
      '{"type":"eof"}',
      JSON.stringify({ type: 'start', run: { kind: 'exec', command: 'a\0b' }, env: {} }),
      JSON.stringify({ type: 'start', run: { kind: 'shell' }, env: { A: 'x\0y' } }),
      JSON.stringify({ type: 'start', run: { kind: 'shell' }, env: {}, terminal: { cols: 0, rows: 1, term: 'x' } }),
      JSON.stringify({ type: 'start', run: { kind: 'shell' }, env: {}, terminal: { cols: 1, rows: 1, term: 'x;y' } }),
    ]
    for (const message of wrong) {
      const socket = await open(box)
      socket.send(message)
      assert.equal((await follow(socket)).code, 1008, String(message))
    }
  })
})

suite('GET /ssh/port', () => {
  test('GET /ssh/port passes bytes in both directions; each direction can end while the other continues', async () => {
    await using box = await startToolbox()
    const server = createServer({ allowHalfOpen: true }, (connection) => {
      const heard: Buffer[] = []
      connection.on('data', (data: Buffer) => heard.push(data))
      connection.on('end', () => connection.end(Buffer.concat(heard).reverse()))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const socket = await open(box, `/ssh/port?port=${port}`)
    const heard: string[] = []
    socket.on('message', (data: Buffer, isBinary: boolean) => heard.push(isBinary ? data.toString() : `<${data}>`))
    socket.send(Buffer.from('abc'))
    socket.send('eof')
    const [code] = await once(socket, 'close')
    server.close()
    assert.deepEqual([heard.join(''), code], ['cba<eof>', 1000])
  })

  test('GET /ssh/port answers 422 for a port without a listener, and 400 for an invalid port, before the upgrade', async () => {
    await using box = await startToolbox()
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    await new Promise((resolve) => server.close(resolve))
    for (const [query, status] of [
      [`port=${port}`, 422],
      ['port=0', 400],
      ['port=x', 400],
      ['', 400],
    ] as const) {
      const socket = box.socket(`/ssh/port?${query}`)
      const [, answer] = await once(socket, 'unexpected-response')
      assert.equal(answer.statusCode, status, query)
      answer.resume()
      socket.on('error', () => undefined).terminate()
    }
  })
})
