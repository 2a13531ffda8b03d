// What clients and people do on their first day, tried against a server: it prints a line for each, and ends with 1 if one fails.
//
//   npm install @daytona/sdk@0
//   DAYTONA_API_URL=http://127.0.0.1:4600/api DAYTONA_API_KEY=$(./alcove key) node examples/first-day.mjs [NUMBER …]
//
// It makes a few sandboxes of 1 cpu and 1 GiB, and deletes them at the end.
import assert from 'node:assert/strict'
import { Daytona } from '@daytona/sdk'

const api = process.env.DAYTONA_API_URL ?? 'http://127.0.0.1:4600/api'
const authorization = `Bearer ${process.env.DAYTONA_API_KEY}`
const wanted = process.argv.slice(2).map(Number)

const daytona = new Daytona()
const made = []
const create = async (options = {}) => {
  const sandbox = await daytona.create({ autoStopInterval: 15, ...options })
  made.push(sandbox)
  return sandbox
}

/** Makes a call as curl does, without the header that names an SDK. */
const call = async (method, url, body, headers = {}) => {
  const reply = await fetch(url, {
    method,
    headers: { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await reply.text()
  const isJson = reply.headers.get('content-type')?.includes('json')
  return {
    status: reply.status,
    headers: reply.headers,
    text,
    json: isJson && text !== '' ? JSON.parse(text) : undefined,
  }
}

const box = await create({ name: `first-day-${process.pid}` })
const toolbox = `${box.toolboxProxyUrl}/${box.id}`
const execute = async (command, timeout = 60) =>
  (await call('POST', `${toolbox}/process/execute`, { command, timeout })).json
const run = async (command) => (await box.process.executeCommand(command)).result
const code = async (text, language = 'python') =>
  (await call('POST', `${toolbox}/process/code-run`, { code: text, language })).json

/** Node 20 has no WebSocket of its own, so the one that the SDK installs is used. */
const { default: WebSocket } = await import('ws')
const open = (url, options = {}) =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(url.replace(/^http/, 'ws'), { headers: { authorization }, ...options })
    socket.addEventListener('open', () => resolve(socket))
    socket.addEventListener('error', () => reject(new Error(`${url} does not upgrade`)))
  })

const checks = {
  1: [
    'errors say the words that programs look for',
    async () => {
      const messageOf = async (method, url, body) => (await call(method, url, body)).json?.message
      assert.match(await messageOf('GET', `${api}/sandbox/nobody`), /not found/i)
      assert.match(await messageOf('GET', `${toolbox}/files/download?path=/nothing`), /not found/i)
      assert.match(await messageOf('GET', `${toolbox}/process/session/nothing`), /not found/i)
      assert.match(await messageOf('GET', `${toolbox}/process/pty/nothing`), /not found/i)
      assert.match(await messageOf('GET', `${api}/snapshots/nothing`), /not found/i)
      assert.match(await messageOf('GET', `${toolbox}/files/download?path=/etc/shadow`), /permission denied/i)
      assert.match(await messageOf('POST', `${api}/sandbox`, { name: box.name, cpu: 1 }), /already exists/i)
      assert.match(await messageOf('POST', `${api}/sandbox`, { cpu: 100_000 }), /limit exceeded/i)
      const wrong = await fetch(`${api}/sandbox`, { headers: { authorization: 'Bearer dtn_wrong' } })
      assert.match((await wrong.json()).message, /invalid credentials/i)
    },
  ],
  2: [
    'a sandbox that is being archived can be started',
    async () => {
      const sandbox = await create()
      await sandbox.fs.uploadFile(Buffer.from('kept'), 'kept.txt')
      await sandbox.stop()
      await sandbox.archive()
      await sandbox.start()
      assert.equal(String(await sandbox.fs.downloadFile('kept.txt')), 'kept')
    },
  ],
  3: [
    'a string is answered as bare text',
    async () => {
      const { text, headers } = await call('GET', `${api}/sandbox/${box.id}/signing-key`)
      assert.match(headers.get('content-type'), /^text\/plain/)
      assert.doesNotMatch(text, /"/)
    },
  ],
  4: [
    'the preview of port 2280 leads to the toolbox',
    async () => {
      const { url, token } = (await call('GET', `${api}/sandbox/${box.id}/ports/2280/preview-url`)).json
      const { host, port } = new URL(url)
      const reply = await call(
        'GET',
        `${new URL(box.toolboxProxyUrl).origin}/preview/${box.id}/2280/user-home-dir`,
        undefined,
        {
          authorization: '',
          'x-daytona-preview-token': token,
        },
      )
      assert.equal(reply.status, 200, `${host} ${port}: ${reply.text}`)
      assert.equal(reply.json.dir, '/home/daytona')
    },
  ],
  5: [
    'a terminal is there when its socket opens',
    async () => {
      for (let n = 0; n < 10; n++) {
        const socket = await open(`${toolbox}/process/pty/create-connect?id=tty-${n}&cols=80&rows=24`)
        const { json } = await call('GET', `${toolbox}/process/pty`)
        assert.ok(JSON.stringify(json).includes(`tty-${n}`), JSON.stringify(json))
        socket.close()
        await call('DELETE', `${toolbox}/process/pty/tty-${n}`)
      }
    },
  ],
  6: [
    'session logs for older SDKs are text with the marks of the streams',
    async () => {
      await box.process.createSession('old')
      const { cmdId } = await box.process.executeSessionCommand('old', { command: 'echo out; echo err >&2' })
      const logs = await call('GET', `${toolbox}/process/session/old/command/${cmdId}/logs`, undefined, {
        'x-daytona-sdk-version': '0.143.0',
      })
      assert.match(logs.text, /\x01\x01\x01out\n/)
      assert.match(logs.text, /\x02\x02\x02err\n/)
      await box.process.deleteSession('old')
    },
  ],
  7: [
    'a command of an SDK has no default limit, any other has 10 seconds and is told so',
    async () => {
      const command = 'sleep 12; echo done'
      const [sdk, other] = await Promise.all([run(command), call('POST', `${toolbox}/process/execute`, { command })])
      assert.equal(sdk, 'done\n')
      assert.equal(other.status, 408)
      assert.match(other.json.message, /timeout.*default/i)
    },
  ],
  8: [
    'pkill -f of a name spares the call that runs it',
    async () => assert.equal((await execute('pkill -f "http.server 8123"; echo after')).result, 'after\n'),
  ],
  9: [
    'code runs as people write it: spawn, inspect, import, await, notebooks',
    async () => {
      const spawn =
        'import multiprocessing as m\nif __name__ == "__main__":\n  print(m.get_context("spawn").Pool(2).map(abs, [-1]))'
      assert.equal((await code(spawn)).result, '[1]\n')
      assert.match(
        (await code('import inspect\ndef f(): pass\nprint(inspect.getsource(f))')).result,
        /^def f\(\): pass/,
      )
      const module = 'import fs from "node:fs"; console.log(await 1, typeof fs.statSync)'
      assert.equal((await code(module, 'javascript')).result, '1 function\n')
      await box.fs.uploadFile(Buffer.from('x = 5'), '/tmp/uploaded.py')
      const { stdout } = await box.codeInterpreter.runCode(
        'import uploaded, asyncio\nawait asyncio.sleep(0)\nprint(uploaded.x)',
      )
      assert.equal(stdout, '5\n')
      assert.match((await box.codeInterpreter.runCode('%pip install x')).error.value, /subprocess/)
    },
  ],
  10: [
    'a refused upload is answered, every time',
    async () => {
      const url = new URL(await box.uploadUrl('/tmp/x'))
      url.searchParams.set('signature', 'wrong')
      for (let n = 0; n < 30; n++) {
        const body = new FormData()
        body.append('file', new Blob(['x'.repeat(30)]), 'x')
        const { status } = await fetch(url, { method: 'POST', body })
        assert.ok(status >= 400 && status < 500, String(status))
      }
    },
  ],
  11: [
    'an upload to a link writes what it leads to',
    async () => {
      await execute('ln -sf /home/daytona/target /home/daytona/link')
      await box.fs.uploadFile(Buffer.from('through'), 'link')
      assert.equal((await execute('cat target; test -L link && echo " link"')).result, 'through link\n')
    },
  ],
  12: [
    'a create is taken once the server says that it is ready, and is never a bad request before',
    async () => {
      const ready = await fetch(`${api}/health/ready`)
      const reply = await call('POST', `${api}/sandbox`, {})
      assert.ok(ready.status === 200 || ready.headers.get('retry-after'), `${ready.status} without Retry-After`)
      if (reply.status === 200) made.push(await daytona.get(reply.json.id))
      else assert.ok(ready.status !== 200 && reply.status === 503, reply.text)
    },
  ],
  13: [
    'what is blocked fails at once',
    async () => {
      const sandbox = await create({ networkBlockAll: true })
      const began = performance.now()
      const tries = 'timeout 20 bash -c "echo > /dev/tcp/198.51.100.9/443"; timeout 20 getent hosts example.com'
      assert.notEqual((await sandbox.process.executeCommand(tries)).exitCode, 0)
      assert.ok(performance.now() - began < 5000, 'within seconds, not 40')
    },
  ],
  14: [
    'login shells keep the PATH',
    async () => {
      const sandbox = await create({ envVars: { PATH: '/opt/venv/bin:/usr/local/bin:/usr/bin:/bin' } })
      assert.match((await sandbox.process.executeCommand("bash -lc 'echo $PATH'")).result, /^\/opt\/venv\/bin:/)
    },
  ],
  15: [
    'the limit of processes is more than 1024 where there is memory for more',
    async () => {
      const sandbox = await create({ snapshot: undefined, resources: { cpu: 1, memory: 4 } })
      const threads =
        'import threading, time\n[threading.Thread(target=time.sleep, args=(3,)).start() for _ in range(2500)]'
      assert.equal((await sandbox.process.codeRun(threads)).exitCode, 0)
    },
  ],
  16: [
    'the end of a long output is kept',
    async () => {
      const { result } = await execute('echo BEGIN; head -c 60000000 /dev/zero | tr "\\0" x; echo REAL-END')
      assert.match(result, /^BEGIN\nx/)
      assert.match(result.slice(-20), /REAL-END\n$/)
    },
  ],
  17: [
    'a busy sandbox answers',
    async () => {
      const sandbox = await create()
      await sandbox.process.executeCommand('for i in $(seq 50); do (while :; do :; done) & done')
      const times = []
      for (let n = 0; n < 11; n++) {
        const began = performance.now()
        await sandbox.process.executeCommand('true')
        times.push(performance.now() - began)
      }
      // The median of the times is checked, because a single call may be slow when the whole machine is busy.
      assert.ok(times.sort((one, other) => one - other)[5] < 2000)
    },
  ],
  18: ['agents are told that they are in a sandbox', async () => assert.equal(await run('echo $IS_SANDBOX'), '1\n')],
  19: [
    'what a database has committed is there after a stop in the middle of its work',
    async () => {
      const sandbox = await create()
      const writes =
        'import sqlite3, itertools\nd = sqlite3.connect("/home/daytona/rows.db", isolation_level=None)\n' +
        'd.execute("pragma journal_mode=wal"); d.execute("create table rows (n)")\n' +
        'for n in itertools.count():\n  d.execute("insert into rows values (?)", (n,)); print(n, flush=True)'
      await sandbox.fs.uploadFile(Buffer.from(writes), 'writes.py')
      await sandbox.process.executeCommand('setsid python3 writes.py > written 2>&1 &')
      await sandbox.process.executeCommand('until test "$(wc -l < written)" -gt 50; do sleep 0.1; done')
      const committed = Number((await sandbox.process.executeCommand('tail -n 1 written')).result)
      await call('POST', `${api}/sandbox/${sandbox.id}/stop?force=true`)
      await sandbox.waitUntilStopped()
      await sandbox.start()
      const count =
        'import sqlite3\nd = sqlite3.connect("/home/daytona/rows.db")\n' +
        'print(d.execute("pragma integrity_check").fetchone()[0], d.execute("select count(*) from rows").fetchone()[0])'
      const [state, rows] = (await sandbox.process.codeRun(count)).result.trim().split(' ')
      assert.equal(state, 'ok')
      assert.ok(Number(rows) > committed, `${rows} rows, and ${committed + 1} were committed`)
    },
  ],
  20: [
    'a server that answers only to localhost is called so, where a label says it',
    async () => {
      const sandbox = await create({ labels: { 'preview-host': 'localhost' } })
      const server =
        'import http.server\nclass Echo(http.server.BaseHTTPRequestHandler):\n  def do_GET(self):\n' +
        '    text = "%s %s" % (self.headers["Host"], self.headers["X-Forwarded-Host"])\n' +
        '    self.send_response(200); self.send_header("Content-Length", str(len(text))); self.end_headers()\n' +
        '    self.wfile.write(text.encode())\nhttp.server.HTTPServer(("127.0.0.1", 8000), Echo).serve_forever()'
      await sandbox.fs.uploadFile(Buffer.from(server), 'server.py')
      await sandbox.process.executeCommand('setsid python3 server.py >/dev/null 2>&1 &')
      await sandbox.process.executeCommand('until curl -sf http://127.0.0.1:8000/ >/dev/null; do sleep 0.1; done')
      const url = new URL(`/preview/${sandbox.id}/8000/`, sandbox.toolboxProxyUrl)
      const { status, text } = await call('GET', url)
      assert.deepEqual([status, text], [200, `localhost:8000 ${url.host}`])
    },
  ],
  21: [
    'the timeline, and with it each webhook, says who stopped a sandbox and why it ended',
    async () => {
      const sandbox = await create()
      const eventsOf = async () => (await call('GET', `${api}/sandbox/${sandbox.id}/events`)).json.items
      await sandbox.process.executeCommand("python3 -c 'a=[bytearray(1<<28) for _ in range(64)]'")
      const isKill = ({ cause }) => cause?.oomKilled === true
      for (let tries = 0; tries < 50 && !(await eventsOf()).some(isKill); tries++)
        await new Promise((resolve) => setTimeout(resolve, 200))
      assert.ok((await eventsOf()).some(isKill), JSON.stringify(await eventsOf()))
      await sandbox.stop()
      const stopped = (await eventsOf()).find(({ to }) => to === 'stopping')
      assert.equal(stopped?.by?.kind, 'user', JSON.stringify(stopped))
    },
  ],
  22: [
    'using a sandbox is activity, looking at it is none',
    async () => {
      const activity = async () => (await call('GET', `${api}/sandbox/${box.id}`)).json.lastActivityAt
      const before = await activity()
      await call('GET', `${api}/sandbox`)
      await call('GET', `${api}/sandbox/${box.id}/events`)
      assert.equal(await activity(), before)
      // The server writes the time of the last use to its database only every few seconds, so this is repeated.
      for (let tries = 0; tries < 60 && (await activity()) === before; tries++) {
        await run('true')
        await new Promise((resolve) => setTimeout(resolve, 1000))
      }
      assert.notEqual(await activity(), before)
    },
  ],
  23: [
    'a preview can be reached by a name that every program resolves',
    async () => {
      await execute('setsid python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 &')
      await execute('until curl -sf http://127.0.0.1:8000/ >/dev/null; do sleep 0.1; done')
      const { token } = await box.getPreviewLink(8000)
      const url = new URL(`/preview/${box.id}/8000/`, box.toolboxProxyUrl)
      const reply = await fetch(url, { headers: { 'x-daytona-preview-token': token } })
      assert.equal(reply.status, 200)
    },
  ],
  24: [
    'a refusal leaves the connection usable',
    async () => {
      for (let n = 0; n < 3; n++) {
        const reply = await fetch(`${toolbox}/files/upload?path=/root/x`, {
          method: 'POST',
          headers: { authorization, 'content-type': 'multipart/form-data; boundary=b' },
          body: `--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n${'x'.repeat(2_000_000)}\r\n--b--\r\n`,
        })
        assert.equal(reply.status, 403, await reply.text())
        assert.equal((await execute('echo next')).result, 'next\n')
      }
    },
  ],
  25: [
    '64 uploads at once are taken',
    async () => {
      const names = Array.from({ length: 64 }, (_, n) => `many/${n}`)
      await execute('mkdir -p many')
      await Promise.all(names.map((name) => box.fs.uploadFile(Buffer.from(name), name)))
      assert.equal((await execute('ls many | wc -l')).result, '64\n')
    },
  ],
  26: [
    'the reason of a failed create reaches the caller',
    async () => {
      const name = `first-day-nope-${process.pid}`
      const failing = daytona.create({ name, image: 'registry.invalid/nope:1' }, { timeout: 60 })
      await assert.rejects(failing, /error reason: .*registry\.invalid .*(resolved|reached)/)
      made.push(await daytona.get(name))
      const socket = await open(`${toolbox}/process/pty/create-connect?id=taken&cols=80&rows=24`)
      const second = box.process.createPty({ id: 'taken', onData: () => {} }).then((pty) => pty.waitForConnection())
      await assert.rejects(second, /taken|already exists/i)
      socket.close()
    },
  ],
  27: [
    'a command that is killed says what it wrote, and that memory ran out',
    async () => {
      const { json, status } = await call('POST', `${toolbox}/process/execute`, {
        command: 'echo before; sleep 10',
        timeout: 2,
      })
      assert.deepEqual([status, json.output], [408, 'before\n'])
      const killed = await execute(
        "python3 -c 'a=bytearray(64<<30)' || python3 -c 'a=[bytearray(1<<28) for _ in range(64)]'",
      )
      assert.deepEqual([killed.exitCode, killed.oom], [137, true])
    },
  ],
  28: [
    'an upload writes the file that is there',
    async () => {
      await execute('echo one > watched; ln -f watched beside')
      await box.fs.uploadFile(Buffer.from('two'), 'watched')
      assert.equal((await execute('cat beside')).result, 'two')
    },
  ],
  29: [
    'ping needs no right',
    async () => {
      const ping =
        'import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)\n' +
        's.sendto(b"\\x08" + bytes(7), ("127.0.0.1", 0)); s.settimeout(5); print(len(s.recv(64)))'
      assert.match((await code(ping)).result, /^\d+\n$/)
    },
  ],
}

let failed = 0
try {
  for (const [number, [title, check]] of Object.entries(checks)) {
    if (wanted.length > 0 && !wanted.includes(Number(number))) continue
    try {
      await check()
      console.log(`ok    ${number.padStart(2)}  ${title}`)
    } catch (error) {
      failed += 1
      console.log(
        `FAIL  ${number.padStart(2)}  ${title}\n          ${String(error.message).split('\n').slice(0, 6).join('\n          ')}`,
      )
    }
  }
} finally {
  await Promise.allSettled(made.map((sandbox) => sandbox.delete()))
}
console.log(failed === 0 ? 'all of it works' : `${failed} failed`)
process.exit(failed === 0 ? 0 : 1)
