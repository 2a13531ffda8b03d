// A sandbox that is used is not stopped as idle (docs/reference/activity.md). All kinds of use run at once, each in a sandbox of
// its own, for longer than the auto-stop interval.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { after, before, suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { type Box, createBox, until } from './box.ts'
import { type Platform, platform } from './harness.ts'

/** Answers each request with only the head of a response, or with an upgrade to a WebSocket, and then sends nothing more. */
const silentServer = `
import socket, threading
def serve(connection):
    head = b''
    while b'\\r\\n\\r\\n' not in head:
        head += connection.recv(65536)
    if b'\\r\\nupgrade:' in head.lower():
        connection.sendall(b'HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n')
    elif head.startswith(b'GET /short'):
        connection.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n')
    else:
        connection.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Type: text/event-stream\\r\\n\\r\\n')
    connection.recv(1)
    connection.close()
listener = socket.create_server(('127.0.0.1', 3000))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
`

/**
 * Begins to use a sandbox, for example by an open call, and resolves when the use has begun. The use should last until `signal` is
 * aborted. If it ends earlier, `over` is called with the reason.
 */
type Use = (box: Box, signal: AbortSignal, over: (why: string) => void) => Promise<unknown>

suite('what counts as activity', { timeout: 420_000 }, () => {
  let alcove: Platform
  before(async () => {
    alcove = await platform()
  })
  after(async () => {
    await alcove?.[Symbol.asyncDispose]()
  })

  const urlOf = ({ id, record }: Box, path: string) => `${record['toolboxProxyUrl']}/${id}${path}`
  const bearer = () => ({ authorization: `Bearer ${alcove.key}` })

  /** Returns a `Use` that keeps one call to `path` open. The sandbox must not answer this call before the test ends. */
  const held =
    (path: string, body: object): Use =>
    async (box, signal, over) => {
      const headers = { ...bearer(), 'content-type': 'application/json' }
      fetch(urlOf(box, path), { method: 'POST', headers, body: JSON.stringify(body), signal }).then(
        async (reply) => over(`${reply.status} ${await reply.text()}`),
        (error) => signal.aborted || over(String(error)),
      )
    }

  const socketAt = async (url: string, signal: AbortSignal, over: (why: string) => void) => {
    const socket = new WebSocket(url, { headers: bearer() })
    socket.on('error', (error) => signal.aborted || over(String(error)))
    socket.on('close', (code) => signal.aborted || over(`closed with ${code}`))
    signal.addEventListener('abort', () => socket.terminate())
    await once(socket, 'open')
    return socket
  }

  const begin = async (box: Box, id: string, command: string) => {
    await box.toolbox('POST', '/process/session', { sessionId: id })
    const { status, body } = await box.toolbox('POST', `/process/session/${id}/exec`, { command, runAsync: true })
    assert.equal(status, 202, JSON.stringify(body))
    return String(body['cmdId'])
  }

  const serve = async (box: Box) => {
    await box.run(`cat > /tmp/server.py <<'END'\n${silentServer}\nEND\nsetsid python3 /tmp/server.py >/dev/null 2>&1 &`)
    await box.run(
      'for i in $(seq 100); do curl -so /dev/null http://127.0.0.1:3000/short && exit 0; sleep .1; done; exit 1',
    )
    const { body } = await alcove.api('GET', `/sandbox/${box.id}/ports/3000/preview-url`)
    return { 'x-daytona-preview-token': String(body['token']) }
  }

  const previewOf = (box: Box, path: string) =>
    `${new URL(String(box.record['toolboxProxyUrl'])).origin}/preview/${box.id}/3000${path}`

  const open = (url: string, options: { method?: string; headers: Record<string, string>; signal: AbortSignal }) =>
    request(url, { ...options, agent: false })

  const watch = (answer: IncomingMessage, signal: AbortSignal, over: (why: string) => void) => {
    answer.on('error', () => {})
    answer.on('close', () => signal.aborted || over('its connection was closed'))
  }

  const nowAndThen = async (signal: AbortSignal, over: (why: string) => void, run: () => Promise<number>) => {
    const one = async () => {
      const status = await run().catch(String)
      if (!signal.aborted && ![200, 201].includes(Number(status))) over(String(status))
    }
    await one()
    const timer = setInterval(one, 20_000)
    signal.addEventListener('abort', () => clearInterval(timer))
  }

  const sleeps = 'import time; time.sleep(600)'

  const counts: Record<string, Use> = {
    'a command that somebody waits for': held('/process/execute', { command: 'sleep 600', timeout: 600 }),
    'code that somebody waits for': held('/process/code-run', { code: sleeps, language: 'python', timeout: 600 }),
    'a command of a session that somebody waits for': async (box, signal, over) => {
      await box.toolbox('POST', '/process/session', { sessionId: 'a' })
      await held('/process/session/a/exec', { command: 'sleep 600' })(box, signal, over)
    },
    'a run of the interpreter': async (box, signal, over) => {
      const socket = await socketAt(urlOf(box, '/process/interpreter/execute').replace('http', 'ws'), signal, over)
      socket.send(JSON.stringify({ code: sleeps, timeout: 600 }))
    },
    'a follower of logs that say nothing': async (box, signal, over) => {
      const command = await begin(box, 'a', 'sleep 600')
      const url = urlOf(box, `/process/session/a/command/${command}/logs?follow=true`)
      await socketAt(url.replace('http', 'ws'), signal, over)
    },
    'an open terminal in which nothing happens': (box, signal, over) =>
      socketAt(urlOf(box, '/process/pty/create-connect?id=a&cols=80&rows=24').replace('http', 'ws'), signal, over),
    'a WebSocket of a preview that is silent': async (box, signal, over) => {
      const headers = { ...(await serve(box)), connection: 'Upgrade', upgrade: 'websocket' }
      const asked = open(previewOf(box, '/'), { headers, signal }).end()
      asked.on('error', (error) => signal.aborted || over(String(error)))
      const [, socket] = await once(asked, 'upgrade')
      signal.addEventListener('abort', () => socket.destroy())
      socket.on('error', () => {})
      socket.on('close', () => signal.aborted || over('its connection was closed'))
    },
    'an answer of a preview that is silent': async (box, signal, over) => {
      const asked = open(previewOf(box, '/'), { headers: await serve(box), signal }).end()
      asked.on('error', (error) => signal.aborted || over(String(error)))
      const [answer] = await once(asked, 'response')
      watch(answer.resume(), signal, over)
    },
    'an upload that still comes': async (box, signal, over) => {
      const headers = { ...bearer(), 'content-type': 'multipart/form-data; boundary=b' }
      const asked = open(urlOf(box, '/files/upload?path=/tmp/up'), { method: 'POST', headers, signal })
      asked.on('error', (error) => signal.aborted || over(String(error)))
      asked.on('response', ({ statusCode }) => over(`${statusCode}`))
      asked.write('--b\r\nContent-Disposition: form-data; name="file"; filename="up"\r\n\r\n')
      // Uploads 8 KiB per second, because the server ends an upload that is slower than 1 KiB per second for a minute.
      const timer = setInterval(() => asked.write('a piece\n'.repeat(1024)), 1000)
      signal.addEventListener('abort', () => clearInterval(timer))
    },
    'a download that is still read': async (box, signal, over) => {
      await box.run('truncate -s 1G /tmp/large')
      const asked = open(urlOf(box, '/files/download?path=/tmp/large'), { headers: bearer(), signal }).end()
      asked.on('error', (error) => signal.aborted || over(String(error)))
      const [answer] = (await once(asked, 'response')) as [IncomingMessage]
      watch(answer, signal, over)
      const timer = setInterval(() => answer.read(), 1000)
      signal.addEventListener('abort', () => clearInterval(timer))
    },
    'calls of the toolbox now and then': (box, signal, over) =>
      nowAndThen(signal, over, async () => (await box.toolbox('GET', '/files?path=/tmp')).status),
    'requests of a preview now and then': async (box, signal, over) => {
      const headers = await serve(box)
      await nowAndThen(signal, over, async () => (await fetch(previewOf(box, '/short'), { headers })).status)
    },
    'POST /sandbox/{id}/last-activity now and then': (box, signal, over) =>
      nowAndThen(signal, over, async () => (await alcove.api('POST', `/sandbox/${box.id}/last-activity`)).status),
  }

  /**
   * Does, in one sandbox, everything that does not count as activity. The test checks that this sandbox is stopped as idle.
   */
  const useWithoutCounting = async (box: Box, signal: AbortSignal) => {
    await begin(box, 'a', 'while :; do echo working; sleep 1; done')
    await box.run('setsid sh -c "while :; do date; sleep 1; done" >/tmp/background 2>&1 &')
    await box.toolbox('POST', '/process/interpreter/context', {})
    await box.toolbox('POST', '/process/pty', { id: 'nobody-is-connected', cols: 80, rows: 24 })
    const quiet = { ...bearer(), 'x-daytona-skip-last-activity-update': 'true' }
    const headers = { ...quiet, 'content-type': 'application/json' }
    const body = JSON.stringify({ command: 'sleep 600', timeout: 600 })
    void fetch(urlOf(box, '/process/execute'), { method: 'POST', headers, body, signal }).catch(() => {})
    const looks = async () => {
      for (const path of ['', '/events', '/ports/3000/preview-url', '/signing-key'])
        await alcove.api('GET', `/sandbox/${box.id}${path}`)
      await alcove.api('GET', '/sandbox')
      await alcove.api('PUT', `/sandbox/${box.id}/labels`, { labels: { seen: String(Date.now()) } })
      await box.toolbox('GET', '/system/metrics')
      await fetch(urlOf(box, '/files?path=/tmp'), { headers: quiet })
      await fetch(urlOf(box, '/files?path=/tmp'), { method: 'OPTIONS' })
      await fetch(urlOf(box, '/files?path=/tmp'), { headers: { authorization: 'Bearer wrong' } })
    }
    void (async () => {
      while (!signal.aborted) {
        await looks().catch(() => {})
        await pause(5000, undefined, { signal }).catch(() => {})
      }
    })()
  }

  test('a sandbox that callers use keeps running; a sandbox with only background work is stopped as idle', async () => {
    const ending = new AbortController()
    const { signal } = ending
    const boxes: Box[] = []
    const create = async () => {
      const box = await createBox(alcove, { autoStopInterval: 1 })
      boxes.push(box)
      return box
    }
    const ended = new Map<string, string>()
    try {
      const used = await Promise.all(
        Object.entries(counts).map(async ([title, use]) => {
          const box = await create()
          await use(box, signal, (why) => ended.set(title, why))
          return { title, box }
        }),
      )
      // The idle sandbox is the newest. So if the used sandboxes still run when the idle one is stopped, the use has kept them
      // running.
      const idle = await create()
      await useWithoutCounting(idle, signal)
      await until(
        'a sandbox that is only looked at is stopped',
        async () => {
          await pause(1000)
          return (await alcove.api('GET', `/sandbox/${idle.id}`)).body['state'] === 'stopped'
        },
        150,
      )
      const seen = await Promise.all(
        used.map(async ({ title, box }) => {
          const { body } = await alcove.api('GET', `/sandbox/${box.id}`)
          return [title, body['state'], ended.get(title)]
        }),
      )
      assert.deepEqual(
        seen,
        used.map(({ title }) => [title, 'started', undefined]),
      )
      const { body } = await alcove.api('GET', `/sandbox/${idle.id}/events`)
      const stop = (body['items'] as { to: string; by: object }[]).find(({ to }) => to === 'stopping')
      assert.deepEqual(stop?.by, { kind: 'timer', id: 'auto-stop' })
    } finally {
      ending.abort()
      await Promise.all(boxes.map((box) => box[Symbol.asyncDispose]()))
    }
  })
})
