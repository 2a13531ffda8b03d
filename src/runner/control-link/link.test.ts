import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { type WebSocket, WebSocketServer } from 'ws'
import { silentLog } from '#src/kit/log.ts'
import { assigned } from '#src/runner/testing/simulated-host.ts'
import { type Assignment, closedForVersion, type FromRunner, type ImageAssignment } from '#src/wire/runner-link.ts'
import { idOf, isRead } from './assignment.ts'
import { ControlClient } from './control-client.ts'
import { Link } from './link.ts'
import { Listing } from './listing.ts'

const hello = {
  type: 'hello',
  address: 'unix:/r.sock',
  images: ['default'],
  capabilities: { cpu: 2, memoryGiB: 4, diskGiB: 10, runtime: 'crun', runtimeVersion: '1', hardDiskLimit: true },
  version: '0',
} as const satisfies FromRunner

const imageStorage = { bytes: { images: 3, layers: 2, lines: 1 }, givenBack: { layers: { pressure: 7 } } }

/** Starts a fake control. It accepts links, and answers HTTP requests as the test decides. */
const startControl = async () => {
  const linked: { socket: WebSocket; request: IncomingMessage; said: FromRunner[] }[] = []
  const calls: { method: string; url: string; key: string; body: string }[] = []
  type Answer = { status: number; body: string }
  const answers: { next: Answer; by?: (url: string) => Answer } = { next: { status: 200, body: '[]' } }
  let changed = Promise.withResolvers<void>()
  const change = () => {
    changed.resolve()
    changed = Promise.withResolvers()
  }
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const piece of request) body += piece
    calls.push({ method: request.method!, url: request.url!, key: String(request.headers.authorization), body })
    const { status, body: text } = answers.by?.(String(request.url)) ?? answers.next
    response.writeHead(status, { 'content-type': 'application/json' }).end(text)
  })
  const sockets = new WebSocketServer({ server, path: '/api/runners/link' })
  sockets.on('connection', (socket, request) => {
    const side = { socket, request, said: [] as FromRunner[] }
    linked.push(side)
    socket.on('message', (data) => {
      side.said.push(JSON.parse(String(data)))
      change()
    })
    change()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    linked,
    calls,
    answers,
    until: async (isTrue: () => boolean) => {
      while (!isTrue()) await changed.promise
    },
    async [Symbol.asyncDispose]() {
      for (const { socket } of linked) socket.terminate()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const credential = { headers: { authorization: 'Bearer k' } }

const startLink = (url: URL, heard: string[] = [], onHeard: () => void = () => undefined) => {
  const hear = (word: string) => {
    heard.push(word)
    onHeard()
  }
  return new Link({
    controlUrl: url,
    credential: { headers: { authorization: 'Bearer the-runner-key' } },
    log: silentLog(),
    hello: () => hello,
    imageStorage: () => imageStorage,
    onAssign: ({ sandboxId, generation }: Assignment) => hear(`assign ${sandboxId} ${generation}`),
    onImage: ({ image, target }: ImageAssignment) => hear(`image ${image} ${target}`),
    onVolume: ({ volumeId, target }) => hear(`volume ${volumeId} ${target}`),
    onSecrets: ({ sandboxes }) => hear(`secrets of ${sandboxes.map(({ sandboxId }) => sandboxId)}`),
    onDatabase: (databaseId) => {
      hear(`database ${databaseId}`)
      return databaseId !== 'another'
    },
    onVersionRefused: (reason) => hear(`refused ${reason}`),
    onList: () => hear('list'),
    onLost: () => hear('lost'),
    reconnectMs: { first: 1, longest: 2 },
  })
}

suite('the link to control', () => {
  test('the runner connects to control with its key, and its first message describes the runner', async () => {
    await using control = await startControl()
    using _link = startLink(control.url)
    await control.until(() => control.linked[0]?.said.length === 1)
    assert.equal(control.linked[0]?.request.headers.authorization, 'Bearer the-runner-key')
    assert.deepEqual(control.linked[0]?.said, [hello])
  })

  test('if control refuses a runner’s version, the runner gets the reason and does not connect again', async () => {
    await using control = await startControl()
    const { promise, resolve } = Promise.withResolvers<void>()
    const heard: string[] = []
    using link = startLink(control.url, heard, resolve)
    await control.until(() => control.linked[0]?.said.length === 1)
    control.linked[0]?.socket.close(closedForVersion, 'too far apart')
    await promise
    await pause(30)
    assert.deepEqual([heard, control.linked.length, link.isOpen], [['refused too far apart'], 1, false])
  })

  test('`say` sends a report over the link to control; while the link is not connected, `say` returns false', async () => {
    await using control = await startControl()
    using link = startLink(control.url)
    const report = { sandboxId: 'a', generation: 1, state: 'started' } as const
    assert.equal(link.say({ type: 'report', report }), false)
    await control.until(() => control.linked[0]?.said.length === 1)
    assert.equal(link.say({ type: 'report', report }), true)
    await control.until(() => control.linked[0]?.said.length === 2)
    assert.deepEqual(control.linked[0]?.said[1], { type: 'report', report })
  })

  test('the runner gets control’s assignments and requests over the link, and ignores unreadable messages', async () => {
    await using control = await startControl()
    const heard: string[] = []
    const done = Promise.withResolvers<void>()
    using _link = startLink(control.url, heard, () => heard.includes('list') && done.resolve())
    await control.until(() => control.linked[0]?.said.length === 1)
    const { socket } = control.linked[0]!
    const say = (message: unknown) => socket.send(typeof message === 'string' ? message : JSON.stringify(message))
    say({ type: 'welcome', runnerId: 'r', heartbeatSeconds: 10, databaseId: 'd' })
    say({ type: 'welcome', runnerId: 'r', heartbeatSeconds: 10 })
    for (const bad of ['{', 'null', '5', '{"type":"dance"}', '{"type":"assign"}']) say(bad)
    say({ type: 'assign', assignment: { ...assigned('a', 1), sandboxId: '../../etc' } })
    say({ type: 'assign', assignment: { ...assigned('a', 1), target: 'exploded' } })
    say({ type: 'assign', assignment: assigned('box', 4) })
    const image = { image: 'tool', target: 'present', source: { kind: 'sandbox', sandboxId: 'a' }, maxGiB: 1 }
    for (const wrong of [{ image: '../tool' }, { source: { kind: 'wish' } }, { target: 'elsewhere' }, { maxGiB: -1 }])
      say({ type: 'image', assignment: { ...image, ...wrong } })
    say({ type: 'image', assignment: image })
    const volume = { volumeId: 'data', driver: 'directory', target: 'absent' }
    for (const wrong of [{ volumeId: '../data' }, { driver: 'other' }, { target: 'present' }])
      say({ type: 'volume', assignment: { ...volume, ...wrong } })
    say({ type: 'volume', assignment: volume })
    const used = { sandboxId: 'box', generation: 4, secretIds: ['s'] }
    for (const sandboxes of [[{ ...used, sandboxId: '../box' }], [{ ...used, generation: -1 }], undefined])
      say({ type: 'secrets', secrets: { secrets: [], sandboxes } })
    say({ type: 'secrets', secrets: { secrets: [], sandboxes: [used] } })
    say({ type: 'list' })
    await done.promise
    const answered = ['assign box 4', 'image tool present', 'volume data absent', 'secrets of box', 'list']
    assert.deepEqual(heard, ['database d', ...answered])
  })

  test('if control names an unknown database, the runner ignores all further messages of that link', async () => {
    await using control = await startControl()
    const heard: string[] = []
    using _link = startLink(control.url, heard)
    await control.until(() => control.linked[0]?.said.length === 1)
    const { socket } = control.linked[0]!
    socket.send(JSON.stringify({ type: 'welcome', runnerId: 'r', heartbeatSeconds: 10, databaseId: 'another' }))
    socket.send(JSON.stringify({ type: 'assign', assignment: assigned('box', 4) }))
    socket.send(JSON.stringify({ type: 'list' }))
    const answered = once(socket, 'pong')
    socket.ping()
    await answered
    assert.deepEqual(heard, ['database another'])
  })

  test('after the link to control is lost, the runner reports the loss and connects again', async () => {
    await using control = await startControl()
    const heard: string[] = []
    using _link = startLink(control.url, heard)
    await control.until(() => control.linked[0]?.said.length === 1)
    control.linked[0]!.socket.terminate()
    await control.until(() => control.linked[1]?.said.length === 1)
    assert.deepEqual([heard, control.linked[1]?.said], [['lost'], [hello]])
  })

  test('each heartbeat of a runner tells control how much disk space the runner’s images use', async () => {
    await using control = await startControl()
    using _link = startLink(control.url)
    await control.until(() => control.linked[0]?.said.length === 1)
    control.linked[0]!.socket.send(JSON.stringify({ type: 'welcome', runnerId: 'r', heartbeatSeconds: 0.01 }))
    await control.until(() => (control.linked[0]?.said.filter(({ type }) => type === 'alive').length ?? 0) >= 3)
    assert.deepEqual(control.linked[0]?.said[1], { type: 'alive', imageStorage })
  })
})

suite('HTTP calls from the runner to control', () => {
  test('`list` rejects a damaged list of sandboxes; for an entry that has only a valid id it returns the id', async () => {
    await using control = await startControl()
    await using client = new ControlClient({ controlUrl: control.url, credential, log: silentLog() })
    const record = { id: 'box', state: 'started', assignment: assigned('box', 1) }
    control.answers.next = { status: 200, body: JSON.stringify([record]) }
    assert.deepEqual(
      (await client.list()).filter(isRead).map(({ assignment, state }) => [assignment.sandboxId, state]),
      [['box', 'started']],
    )
    // An entry that is invalid apart from its id is listed, because it shows that the sandbox exists.
    const unread = { id: 'other', state: 'started', assignment: { ...assigned('other', 1), target: 'somehow' } }
    control.answers.next = { status: 200, body: JSON.stringify([unread, record]) }
    assert.deepEqual((await client.list()).map(idOf), ['other', 'box'])
    assert.deepEqual((await client.list()).map(isRead), [false, true])
    for (const [status, body] of [
      [500, '[]'],
      [200, '{}'],
      [200, '['],
      [200, JSON.stringify([record, { id: '../other', state: 'started' }])],
    ] as const) {
      control.answers.next = { status, body }
      await assert.rejects(client.list(), `${status} ${body}`)
    }
    assert.deepEqual(
      [control.calls[0]?.url, control.calls[0]?.key],
      ['/api/sandbox/for-runner?envOnce=true&limit=200', 'Bearer k'],
    )
  })

  test('if an assignment in control’s list has no `env`, `list` takes the `env` of the sandbox’s record', async () => {
    await using control = await startControl()
    await using client = new ControlClient({ controlUrl: control.url, credential, log: silentLog() })
    const env = { HELLO: 'world' }
    const { env: _, ...once } = assigned('once', 1)
    const records = [
      { id: 'once', state: 'started', env, assignment: once },
      { id: 'twice', state: 'started', env, assignment: { ...assigned('twice', 1), env } },
    ]
    control.answers.next = { status: 200, body: JSON.stringify(records) }
    assert.deepEqual(
      (await client.list()).filter(isRead).map(({ assignment }) => assignment.env),
      [env, env],
    )
    const without = [
      { ...records[0], env: undefined },
      { ...records[0], assignment: null },
    ]
    control.answers.next = { status: 200, body: JSON.stringify(without) }
    assert.deepEqual(await client.list(), [{ sandboxId: 'once' }, { sandboxId: 'once' }])
    control.answers.next = { status: 200, body: '[null]' }
    await assert.rejects(client.list(), /without a name/)
  })

  test('the runner fetches all pages of control’s list of sandboxes, and fails if a page fails', async () => {
    await using control = await startControl()
    await using client = new ControlClient({ controlUrl: control.url, credential, log: silentLog() })
    const name = (n: number) => `box-${String(n).padStart(3, '0')}`
    const records = Array.from({ length: 250 }, (_, n) => ({ state: 'started', assignment: assigned(name(n), 1) }))
    const page = (from: number, to?: number) => ({ status: 200, body: JSON.stringify(records.slice(from, to)) })
    control.answers.by = (url) => (url.includes('after=') ? page(200) : page(0, 200))
    assert.equal((await client.list()).length, 250)
    assert.deepEqual(
      control.calls.map(({ url }) => url),
      [
        '/api/sandbox/for-runner?envOnce=true&limit=200',
        '/api/sandbox/for-runner?envOnce=true&limit=200&after=box-199',
      ],
    )
    control.answers.by = (url) => (url.includes('after=') ? { status: 500, body: '' } : page(0, 200))
    await assert.rejects(client.list(), /500/)
  })

  test('`tell` sends a report, and returns `taken` if control answers 200, `refused` if 400, 404 or 409', async () => {
    await using control = await startControl()
    await using client = new ControlClient({ controlUrl: control.url, credential, log: silentLog() })
    const report = { sandboxId: 'box', generation: 3, state: 'error', errorReason: 'why' } as const
    control.answers.next = { status: 200, body: '' }
    assert.equal(await client.tell(report), 'taken')
    const { method, url, body } = control.calls[0]!
    assert.deepEqual(
      [method, url, JSON.parse(body)],
      ['PUT', '/api/sandbox/box/state', { generation: 3, state: 'error', errorReason: 'why' }],
    )
    for (const status of [400, 404, 409]) {
      control.answers.next = { status, body: '{}' }
      assert.equal(await client.tell(report), 'refused')
    }
    for (const status of [401, 500, 503]) {
      control.answers.next = { status, body: '{}' }
      await assert.rejects(client.tell(report))
    }
  })

  test('a runner repeats a failed request for control’s list, and never has two such requests at a time', async () => {
    let reading = 0
    let asked = 0
    const taken = Promise.withResolvers<void>()
    using listing = new Listing({
      list: async () => {
        assert.equal(reading++, 0)
        asked += 1
        await new Promise(setImmediate)
        reading -= 1
        if (asked < 3) throw new Error('away')
        return []
      },
      take: () => taken.resolve(),
      log: silentLog(),
      retryMs: 1,
      everyMs: 1e6,
    })
    for (let i = 0; i < 5; i++) listing.readSoon()
    await taken.promise
    assert.ok(asked >= 3)
  })
})
