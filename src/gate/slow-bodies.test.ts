import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { Problem } from '#src/problems.ts'
import { type Sides, startSides } from './testing/simulated.ts'
import { key, previewHost } from './testing/visiting.ts'

suite('slow request bodies at the gate', () => {
  const post = (sides: Sides, more: object = {}) =>
    request({
      port: sides.port,
      host: '127.0.0.1',
      method: 'POST',
      path: '/toolbox/box/files/upload',
      headers: { ...key, 'content-length': 100_000 },
      agent: false,
      ...more,
    }).on('error', () => undefined)

  test('a toolbox call gets 408 if its body comes below a minimum speed; a preview call has no minimum speed', async () => {
    await using sides = await startSides({ slow: { spanMs: 300 } })
    const cutOff = Promise.withResolvers<void>()
    sides.toolbox.call = (incoming, response) => {
      incoming.resume().once('error', (problem: Problem) => {
        response.writeHead(problem.status).end()
        cutOff.resolve()
      })
      incoming.once('end', () => response.end('taken'))
    }
    const [trickling, slow] = [post(sides), post(sides)]
    const preview = post(sides, { path: '/', headers: { ...key, 'content-length': 100_000, host: previewHost } })
    const answers = [trickling, slow, preview].map(
      async (call) => ((await once(call, 'response')) as [IncomingMessage])[0],
    )
    let sent = 0
    let previewed = 0
    const ticking = setInterval(() => {
      trickling.write('x')
      preview.write('x')
      previewed += 1
      if (sent < 90_000) slow.write(Buffer.alloc(5000))
      sent += 5000
    }, 50)
    try {
      assert.equal((await answers[0])?.statusCode, 408)
      await cutOff.promise
      while (sent < 90_000) await pause(50)
      clearInterval(ticking)
      slow.end(Buffer.alloc(10_000))
      assert.equal((await answers[1])?.statusCode, 200)
      preview.end(Buffer.alloc(100_000 - previewed))
      assert.equal((await answers[2])?.statusCode, 200)
    } finally {
      clearInterval(ticking)
    }
  })

  test('an upload does not get 408 if it is slow only because the toolbox does not read it', async () => {
    await using sides = await startSides({ slow: { spanMs: 200 } })
    const held = Promise.withResolvers<[IncomingMessage, ServerResponse]>()
    sides.toolbox.call = (incoming, response) => held.resolve([incoming.pause(), response])
    const body = Buffer.alloc(32 * 1024 ** 2)
    const call = post(sides, { headers: { ...key, 'content-length': body.length } })
    call.end(body)
    const answered = once(call, 'response') as Promise<[IncomingMessage]>
    const [incoming, response] = await held.promise
    await pause(1000)
    incoming.resume().once('end', () => response.end('taken'))
    assert.equal((await answered)[0].statusCode, 200)
  })
})
