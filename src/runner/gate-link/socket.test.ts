import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
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

suite('the socket that gates ask on', { skip: needsRoot }, () => {
  test('can be opened by one group only, also where a former runner left its socket', async () => {
    await using runner = await startGates()
    const { mode, gid, uid } = statSync(runner.path)
    assert.deepEqual([(mode & 0o777).toString(8), uid, gid], ['660', 0, 4242])
  })

  test('watch: says what is here, that this is all, and then what changes', async () => {
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

  test('what is no request is refused, in a sentence or by hanging up, and the runner goes on', async () => {
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
})
