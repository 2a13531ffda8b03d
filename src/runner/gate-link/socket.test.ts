import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { Frames, frameOf, jsonFrameOf } from '#src/kit/length-frames.ts'
import { silentLog } from '#src/kit/log.ts'
import { requestBytes } from '#src/wire/gate-link.ts'
import { needsRoot } from '#test/needs-root.ts'
import type { ContextStore } from '../contexts/store.ts'
import { assigned, SimulatedHost } from '../testing/simulated-host.ts'
import { serveGates } from './socket.ts'

const childrenOf = (pid: number): number =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).length

const startGates = async () => {
  const directory = mkdtempSync(join(tmpdir(), 'alcove-gates-'))
  const path = join(directory, 'runner.sock')
  writeFileSync(path, 'left over')
  const host = new SimulatedHost()
  const config = { entrypoint: ['x'], env: { OF: 'image' }, user: 'u', workdir: '/srv' }
  const parts = { host, contexts: {} as ContextStore, configOf: () => config, log: silentLog() }
  const gates = await serveGates(parts, path, 4242)
  const open = new Set<Socket>()
  return {
    path,
    host,
    connect: (first?: Uint8Array) => {
      const socket = connect({ path, allowHalfOpen: true })
      open.add(socket.on('error', () => undefined))
      if (first) socket.write(first)
      const frames = new Frames(socket, 1024 * 1024)
      return { socket, next: async () => JSON.parse(String((await frames.next()) ?? 'null')) }
    },
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      await gates[Symbol.asyncDispose]()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

const upload = { organizationId: 'o', hash: 'a'.repeat(32), uploadId: 'b'.repeat(32) }

suite('the runner’s socket for requests from gates', { skip: needsRoot }, () => {
  test('only root and one group can open the runner’s socket, even if an earlier runner left a socket there', async () => {
    await using runner = await startGates()
    const { mode, gid, uid } = statSync(runner.path)
    assert.deepEqual([(mode & 0o777).toString(8), uid, gid], ['660', 0, 4242])
  })

  test('a sandbox with an unreadable image does not delay other sandboxes’ reports; its own comes later', {
    timeout: 20_000,
  }, async () => {
    await using runner = await startGates()
    for (const id of ['bad', 'good']) runner.host.hold(assigned(id, 1), 'started')
    let isBroken = true
    const imageOf = runner.host.imageOf.bind(runner.host)
    runner.host.imageOf = async (id) => {
      if (id === 'bad' && isBroken) throw new Error('EIO')
      return await imageOf(id)
    }
    const { next } = runner.connect(jsonFrameOf({ ask: 'watch' }))
    assert.equal((await next()).sandbox?.id, 'good')
    assert.deepEqual(await next(), { type: 'whole' })
    isBroken = false
    assert.equal((await next()).sandbox.id, 'bad')
  })

  test('a gate that connects to a runner gets reports of all sandboxes, and after that of each change', async () => {
    await using runner = await startGates()
    runner.host.hold(assigned('one', 3, { otelEndpoint: 'http://o' }), 'started')
    runner.host.hold(assigned('two', 1), 'stopped')
    const { next } = runner.connect(jsonFrameOf({ ask: 'watch' }))
    const { type, sandbox } = await next()
    assert.deepEqual(
      [type, sandbox.id, sandbox.status, sandbox.socketPath, sandbox.assignment.generation, sandbox.config],
      ['here', 'one', 'started', '/nowhere/one', 3, { env: { OF: 'image' }, workdir: '/srv' }],
    )
    assert.deepEqual(Object.keys(sandbox.assignment).sort(), [
      'env',
      'generation',
      'language',
      'memoryGiB',
      'organizationId',
      'otelEndpoint',
      'regionId',
      'sandboxId',
      'snapshot',
      'user',
    ])
    assert.equal((await next()).sandbox.id, 'two')
    assert.deepEqual(await next(), { type: 'whole' })
    runner.host.hold(assigned('one', 4), 'paused')
    const changed = (await next()).sandbox
    assert.deepEqual([changed.id, changed.status, changed.assignment.generation], ['one', 'paused', 4])
    runner.host.forget('two')
    assert.deepEqual(await next(), { type: 'gone', sandboxId: 'two' })
  })

  test('the runner’s socket refuses an invalid request or closes the connection; later requests are served', async () => {
    await using runner = await startGates()
    const bad = [
      '{}',
      'null',
      'nonsense',
      '{"ask":"exec","sandboxId":"box"}',
      '{"ask":"measure"}',
      '{"ask":"measure","sandboxId":"../box"}',
      '{"ask":"measure","sandboxId":"box","more":1}',
      '{"ask":"put-part","organizationId":"o","hash":"../../x","uploadId":"y","part":1}',
      ...['../../x', '', '.', 'x'.repeat(65)].map((organizationId) =>
        JSON.stringify({ ask: 'put-context', organizationId, hash: 'a'.repeat(32) }),
      ),
      '{"ask":"list-contexts","organizationId":"o","beginning":"../"}',
      ...[0, -1, 1.5, 1001, 1e300].map((part) => JSON.stringify({ ...upload, ask: 'put-part', part })),
      JSON.stringify({ ...upload, ask: 'complete-upload', parts: Array(1001).fill({ number: 1, etag: 'e' }) }),
      '{"ask":"compile","format":"ts"}',
    ]
    for (const text of bad) {
      const { next } = runner.connect(frameOf(Buffer.from(text)))
      assert.ok('refused' in (await next()), text)
    }
    const long = Buffer.alloc(4)
    long.writeUInt32LE(requestBytes + 1)
    for (const bytes of [long, Buffer.from('GET / HTTP/1.1\r\n\r\n')]) {
      const { socket } = runner.connect(bytes)
      await once(socket.resume(), 'end')
    }
    const { next } = runner.connect(jsonFrameOf({ ask: 'memory-kills', sandboxId: 'box' }))
    assert.deepEqual(await next(), { value: { count: 0, spans: [] } })
  })

  test('a connection to the runner’s socket is closed after a timeout if its request stops halfway', async (t) => {
    await using runner = await startGates()
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const half = frameOf(Buffer.from('{"ask":"measure","sandboxId":"box"}')).subarray(0, 9)
    const program = Buffer.concat([jsonFrameOf({ ask: 'compile', format: 'cjs' }), frameOf(Buffer.from('let a = '))])
    for (const bytes of [Buffer.alloc(0), half, program, program.subarray(0, -3)]) {
      const { socket } = runner.connect(bytes)
      const ended = once(socket.resume(), 'end')
      // Give the runner time to read what the test has sent.
      for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
      t.mock.timers.tick(5000)
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
      t.mock.timers.tick(10_000)
      await ended
    }
    t.mock.timers.reset()
    for (const bytes of [half, program, program.subarray(0, -3)]) {
      const { socket, next } = runner.connect()
      socket.end(bytes)
      assert.ok('refused' in ((await next()) ?? { refused: 'nothing was said' }))
    }
    const { next } = runner.connect(jsonFrameOf({ ask: 'memory-kills', sandboxId: 'box' }))
    assert.deepEqual(await next(), { value: { count: 0, spans: [] } })
  })

  test('a runner runs at most 8 TypeScript compilations at a time; other requests do not wait for them', async () => {
    await using runner = await startGates()
    const program = [frameOf(Buffer.from('export const a: number = 1')), frameOf(Buffer.alloc(0))]
    const asked = Array.from({ length: 30 }, () => {
      const { next } = runner.connect(Buffer.concat([jsonFrameOf({ ask: 'compile', format: 'cjs' }), ...program]))
      return next()
    })
    let most = 0
    let isOver = false
    const all = Promise.all(asked).finally(() => {
      isOver = true
    })
    while (!isOver) {
      most = Math.max(most, childrenOf(process.pid))
      const { next } = runner.connect(jsonFrameOf({ ask: 'memory-kills', sandboxId: 'box' }))
      assert.ok('value' in (await next()))
    }
    for (const { value } of await all) assert.match(value.javascript, /a = 1|a: \(\) => a/)
    assert.ok(most > 0 && most <= 8, `${most} compilers at once`)
  })
})
