import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { suite, test } from 'node:test'
import { until } from '../agent/testing/native-agent.ts'

import {
  connect,
  connectedMessage,
  envsToken,
  exitControl,
  listed,
  pty,
  startBox,
  Terminal,
} from './testing/terminal.ts'

suite('GET /process/pty/{sessionId}/connect', () => {
  test('GET /process/pty/{sessionId}/connect answers 400 to a call that is no WebSocket upgrade', async () => {
    await using box = await startBox()
    assert.equal((await box.get(`${pty}/a/connect`)).status, 400)
    assert.equal((await box.get(`${pty}/create-connect?id=a`)).status, 400)
  })

  test('if a client offers several subprotocols, a terminal’s WebSocket uses the one with exit messages', async () => {
    await using box = await startBox()
    await box.post(pty, { id: 'a' })
    for (const [offered, selected] of [
      [[exitControl], exitControl],
      [[envsToken({ A: 'b' }), exitControl], exitControl],
      [['X-Daytona-SDK-Version~1.2.3', exitControl], exitControl],
      [['X-Daytona-SDK-Version~1.2.3'], 'X-Daytona-SDK-Version~1.2.3'],
      [[], ''],
    ] as const) {
      const client = await connect(box, 'a', [...offered])
      assert.equal(client.socket.protocol, selected)
      client.hangUp()
    }
  })

  test('a WebSocket to an unknown or ended terminal is accepted, then gets an error message and is closed', async () => {
    await using box = await startBox()
    await box.post(pty, { id: 'a' })
    const client = await connect(box, 'a')
    client.type('exit\n')
    await client.end
    for (const id of ['a', 'b']) {
      const refused = new Terminal(box.socket(`${pty}/${id}/connect`, [exitControl]))
      const { code, reason } = await refused.end
      assert.equal(code, 1011)
      const [message, ...others] = refused.controls
      assert.deepEqual(others, [])
      assert.deepEqual([message!['type'], message!['status']], ['control', 'error'])
      assert.match(String(message!['error']), /no PTY session/)
      assert.equal(JSON.parse(reason!).error, message!['error'])
    }
  })

  for (const [how, exitCode, exitReason] of [
    ['exit 0', 0, undefined],
    ['exit 7', 7, 'non-zero exit'],
    ['exit 130', 130, 'Ctrl+C'],
    ['kill -KILL $$', 137, 'SIGKILL'],
    ['exit 143', 143, 'SIGTERM'],
    ['kill -HUP $$', 129, 'signal 1'],
  ] as const) {
    test(`after ${how} a terminal client gets all output, then an exit message if requested, then the close`, async () => {
      await using box = await startBox()
      await box.post(pty, { id: 'a' })
      const [told, plain] = [await connect(box, 'a'), await connect(box, 'a', [])]
      told.type(`stty -echo; seq 1 20000; ${how}\n`)
      const exit = { exitCode, ...(exitReason ? { exitReason } : {}) }
      const end = { code: exitCode === 0 ? 1000 : 1011, reason: JSON.stringify(exit) }
      assert.deepEqual([await told.end, await plain.end], [end, end])
      assert.deepEqual(told.controls, [connectedMessage, { type: 'control', status: 'exited', ...exit }])
      assert.deepEqual(plain.controls, [connectedMessage])
      for (const { text } of [told, plain]) assert.match(text, /\r\n19999\r\n20000\r\n/)
      assert.deepEqual(await listed(box), [])
    })
  }

  test('a terminal handles byte 3 as Ctrl-C, and accepts input in text frames and in binary frames', async () => {
    await using box = await startBox()
    await box.post(pty, { id: 'a' })
    const client = await connect(box, 'a')
    // The program itself prints that it runs. From then on the program, not the shell, owns the terminal.
    client.socket.send("sh -c 'echo run$((1)); exec sleep 3600'\n")
    await client.shows(/run1/)
    client.type(Uint8Array.of(3))
    client.socket.send('echo "<$?>"\n')
    await client.shows(/<130>/)
    client.hangUp()
  })

  test('bytes of a terminal pass unchanged in binary frames, even if a character is cut in two', async () => {
    await using box = await startBox()
    await box.post(pty, { id: 'a' })
    const client = await connect(box, 'a')
    client.type("printf '<\\303'; sleep 0.05; printf '\\244\\377\\001>\\n'\n")
    await until(() => client.output.includes(Buffer.from('<\xc3\xa4\xff\x01>', 'latin1')), 'the bytes')
    const typed = Buffer.from('echo "[€]"\n')
    client.type(typed.subarray(0, 8))
    client.type(typed.subarray(8))
    await client.shows(/\r\n(?:.*\r)?\[€\]/)
    client.hangUp()
  })

  test('each client of a terminal sees the output and may type; the terminal stays if a client disconnects', async () => {
    await using box = await startBox()
    await box.post(pty, { id: 'a' })
    const clients = await Promise.all([1, 2, 3, 4].map(() => connect(box, 'a')))
    for (const [i, client] of clients.entries()) client.type(`echo "<${i}:$((10 + ${i}))>"\n`)
    for (const client of clients) for (const i of [0, 1, 2, 3]) await client.shows(new RegExp(`<${i}:1${i}>`))
    for (const client of clients) client.hangUp()
    const late = await connect(box, 'a')
    late.type('echo "<still $((1))>"\n')
    await late.shows(/<still 1>/)
    late.hangUp()
  })

  test('a terminal has at most 32 clients; the next is refused with a reason until a client disconnects', async () => {
    await using box = await startBox()
    await box.post(pty, { id: 'a' })
    await box.post(pty, { id: 'b' })
    const clients = await Promise.all(Array.from({ length: 32 }, () => connect(box, 'a')))
    const refused = new Terminal(box.socket(`${pty}/a/connect`))
    assert.equal((await refused.end).code, 1011)
    assert.match(String(refused.controls[0]?.['error']), /has 32 clients/)
    clients.push(await connect(box, 'b'))
    clients[0]!.hangUp()
    await until(async () => {
      const next = new Terminal(box.socket(`${pty}/a/connect`))
      clients.push(next)
      await until(() => next.controls.length > 0, 'the first message')
      return next.controls[0]!['status'] === 'connected'
    }, 'room for another')
    for (const client of clients) client.hangUp()
  })

  test('a new client of a terminal gets the terminal’s last 64 KiB of output, from the beginning of a line', async () => {
    await using box = await startBox()
    await box.post(pty, { id: 'a' })
    const first = await connect(box, 'a')
    first.type('seq 100000 150000; echo end$((1))\n')
    await first.shows(/end1\r\n/)
    const second = await connect(box, 'a')
    await second.shows(/end1\r\n/)
    assert.ok(second.output.length <= 64 * 1024 + 1024)
    assert.match(second.text, /^\d{6}\r\n\d{6}\r\n/)
    first.hangUp()
    second.hangUp()
  })

  test('a terminal client’s frame of 1 MiB of input arrives completely at a program that reads slowly', async () => {
    await using box = await startBox()
    await box.post(pty, { id: 'a' })
    const client = await connect(box, 'a')
    const data = Buffer.alloc(1024 * 1024, 'abcdefghij')
    client.type('stty raw -echo; echo ready$((1)); sleep 0.1; head -c 1048576 | sha256sum; stty sane\n')
    await client.shows(/ready1/)
    client.type(data)
    await client.shows(new RegExp(createHash('sha256').update(data).digest('hex')))
    client.hangUp()
  })

  test('a terminal client that sends a frame above 4 MiB is closed with 1009, and the shell gets none of it', async () => {
    await using box = await startBox()
    await box.post(pty, { id: 'a' })
    const client = await connect(box, 'a')
    client.type(Buffer.alloc(5 * 1024 * 1024, 'x'))
    assert.equal((await client.end).code, 1009)
    const next = await connect(box, 'a')
    next.type('echo "<$((40 + 2))>"\n')
    await next.shows(/<42>/)
    assert.doesNotMatch(next.text, /xxxx/)
    next.hangUp()
  })

  test('a terminal client that reads too slowly is closed with 1008, and other clients continue', async () => {
    await using box = await startBox()
    await box.post(pty, { id: 'a' })
    const [slow, quick] = [await connect(box, 'a'), await connect(box, 'a')]
    await quick.shows(/[$#] $/)
    slow.socket.pause()
    const before = process.memoryUsage.rss()
    quick.socket.removeAllListeners('message')
    let received = 0
    let heard = ''
    quick.socket.on('message', (data: Buffer) => {
      received += data.length
      if (heard.length < 4096) heard += data.toString()
    })
    // The fast client reads everything before more output comes, so it is never too slow, however busy the machine is.
    quick.type('echo rea\\dy; while read -r _; do head -c 2M /dev/zero | tr "\\0" x; done\n')
    await until(() => heard.includes('ready'), 'the loop')
    for (let mebibytes = 2; mebibytes <= 40; mebibytes += 2) {
      quick.type('\n')
      await until(() => received >= mebibytes * 1024 * 1024, `${mebibytes} MiB of output`)
    }
    assert.ok(process.memoryUsage.rss() - before < 100 * 1024 * 1024, 'nothing piles up')
    slow.socket.resume()
    assert.equal((await slow.end).code, 1008)
    assert.equal(quick.hasEnded, false)
    quick.hangUp()
  })

  test('a background job of an ended terminal continues until a new terminal gets the same id', async () => {
    await using box = await startBox()
    await box.post(pty, { id: 'a' })
    const client = await connect(box, 'a')
    client.type('nohup sleep 3600 >/dev/null 2>&1 & echo "<$!>"\n')
    const pid = Number((await client.shows(/<(\d+)>/))[1])
    client.type('exit\n')
    assert.equal((await client.end).code, 1000)
    assert.deepEqual(await listed(box), [])
    process.kill(pid, 0)
    assert.equal((await box.post(pty, { id: 'a' })).status, 201)
    await until(() => !existsSync(`/proc/${pid}`), 'the end of the job')
  })
})

suite('GET /process/pty/create-connect', () => {
  const path = (query: Record<string, string>) => `${pty}/create-connect?${new URLSearchParams(query)}`

  test('GET /process/pty/create-connect makes a terminal with variables from the subprotocol, and connects to it', async () => {
    await using box = await startBox()
    const query = { id: 'a', cols: '91', rows: '19', cwd: '/tmp' }
    const client = new Terminal(box.socket(path(query), [envsToken({ GREETING: 'grüß dich' }), exitControl]))
    await client.connected()
    assert.equal(client.socket.protocol, exitControl)
    client.type('echo "<$(stty size) $PWD $GREETING>"; exit 3\n')
    await client.shows(/<19 91 \/tmp grüß dich>/)
    assert.deepEqual(await client.end, { code: 1011, reason: '{"exitCode":3,"exitReason":"non-zero exit"}' })
  })

  test('GET /process/pty/create-connect refuses a bad id, size or variables before the upgrade, and makes nothing', async () => {
    await using box = await startBox()
    for (const [query, offered, status] of [
      [{}, [], 400],
      [{ id: '' }, [], 400],
      [{ id: 'a/b' }, [], 400],
      [{ id: 'a', cols: '1001' }, [], 400],
      [{ id: 'a', rows: '0' }, [], 400],
      [{ id: 'a', rows: 'x' }, [], 400],
      [{ id: 'a' }, ['X-Daytona-Pty-Envs~'], 400],
      [{ id: 'a' }, ['X-Daytona-Pty-Envs~bm9wZQ'], 400],
      [{ id: 'a' }, [envsToken([])], 400],
      [{ id: 'a' }, [envsToken({ 'x=': 'y' })], 400],
      [{ id: 'a' }, [envsToken({ x: 7 })], 400],
      [{ id: 'a' }, [envsToken({ x: 'a\0b' })], 400],
    ] as [Record<string, string>, string[], number][]) {
      const refused = await new Terminal(box.socket(path(query), [...offered, exitControl])).end
      assert.equal(refused.status, status, JSON.stringify([query, offered]))
      assert.equal(JSON.parse(refused.body!).statusCode, status)
    }
    assert.deepEqual(await listed(box), [])
  })

  test('GET /process/pty/create-connect with an id in use sends an error, and the existing shell is unaffected', async () => {
    await using box = await startBox()
    await box.post(pty, { id: 'taken' })
    const client = new Terminal(box.socket(path({ id: 'taken' }), [exitControl]))
    const { code, reason } = await client.end
    assert.equal(code, 1011)
    assert.match(JSON.parse(reason!).error, /"taken" already exists/)
    assert.deepEqual(await listed(box), ['taken'])
  })

  test('GET /process/pty/create-connect answers 101 only after the new terminal appears in the list', async () => {
    await using box = await startBox()
    for (const id of ['a', 'b', 'c', 'd', 'e']) {
      const socket = box.socket(path({ id }), [exitControl])
      await once(socket, 'upgrade')
      assert.ok((await listed(box)).includes(id), id)
    }
  })

  test('GET /process/pty/create-connect sends an error after the upgrade if the shell cannot start', async () => {
    await using box = await startBox()
    const client = new Terminal(box.socket(path({ id: 'a', cwd: '/nowhere' }), [exitControl]))
    assert.equal((await client.end).code, 1011)
    assert.match(String(client.controls[0]!['error']), /"\/nowhere" cannot be used/)
    assert.deepEqual(await listed(box), [])
  })
})
