// Tests an agent that sends its answer in small pieces, as a hostile agent may do.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { AgentGone, AgentRefused, agentAt } from './agent.ts'
import { BadFrame, encodeFrame, FieldWriter, kinds } from './frames.ts'

const refused = encodeFrame(kinds.failed, new FieldWriter().u8(4).u32(111).done())

suite('an answer of the agent that arrives in pieces', { timeout: 30_000 }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'alcove-pieces-'))
  const path = join(directory, 'agent')
  const agent = agentAt(path)
  let answer: (socket: Socket) => Promise<void>
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {}).once('data', () => void answer(socket).catch(() => {}))
  })
  before(async () => {
    await once(server.listen(path), 'listening')
  })
  after(() => {
    server.close()
    rmSync(directory, { recursive: true })
  })
  const inPieces =
    (bytes: Buffer, ...cuts: number[]) =>
    async (socket: Socket) => {
      let from = 0
      for (const to of [...cuts, bytes.length]) {
        socket.write(bytes.subarray(from, to))
        // This timer fires only if the reader does not block the event loop while waiting for more bytes.
        await delay(5)
        from = to
      }
    }

  test('the agent’s answer to `dial` may arrive in pieces; bytes after the answer belong to the connection', async () => {
    for (const cut of [1, 2, 4]) {
      answer = async (socket) => {
        await inPieces(encodeFrame(kinds.ok), cut)(socket)
        socket.end('from inside')
      }
      const tunnel = await agent.dial(80)
      assert.equal(Buffer.concat(await tunnel.toArray()).toString(), 'from inside', String(cut))
      tunnel.destroy()
    }
    answer = async (socket) => void socket.end(Buffer.concat([encodeFrame(kinds.ok), Buffer.from('at once')]))
    const tunnel = await agent.dial(80)
    assert.equal(Buffer.concat(await tunnel.toArray()).toString(), 'at once')
    tunnel.destroy()
  })

  test('an agent’s refusal is read completely, however its bytes are split', async () => {
    for (const cut of [2, 5, 7]) {
      answer = inPieces(refused, cut)
      await assert.rejects(agent.dial(80), AgentRefused)
      await assert.rejects(agent.info(), AgentRefused)
    }
  })

  test('the error is AgentGone if the agent’s answer ends too early, and BadFrame if the answer is too long', async () => {
    for (const cut of [2, 7]) {
      answer = async (socket) => void socket.end(refused.subarray(0, cut))
      await assert.rejects(agent.dial(80), AgentGone)
      await assert.rejects(agent.info(), AgentGone)
    }
    answer = async (socket) => void socket.write(encodeFrame(kinds.ok, Buffer.alloc(65)))
    await assert.rejects(agent.dial(80), BadFrame)
  })
})
