// An agent that hostile code has put its own in the place of: whatever it says without end, the runner keeps a bounded part of.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { agentAt } from './agent.ts'
import { encodeFrame, FieldWriter, kinds } from './frames.ts'

const times = (fields: FieldWriter) => fields.u64(0).u64(0).u64(0).u64(0)

const job = (metadataBytes: number) => {
  const fields = times(new FieldWriter().string('j').u8(0).u8(1).u32(1).u8(0).u32(0))
  return encodeFrame(kinds.job, fields.u16(0).u16(0).bytes(Buffer.alloc(metadataBytes)).done())
}
const session = (id: string) =>
  encodeFrame(kinds.session, new FieldWriter().string(id).u8(1).u32(1).u8(0).u32(0).u64(0).done())
const command = (textBytes: number, text = '') => {
  const fields = times(new FieldWriter().string('c').u8(1).u8(0).u32(0))
  return encodeFrame(kinds.command, fields.u32(textBytes).bytes(Buffer.from(text)).done())
}

suite('an agent that never ends', () => {
  const directory = mkdtempSync(join(tmpdir(), 'alcove-endless-'))
  const path = join(directory, 'agent')
  let says: () => Iterable<Buffer>
  let said = 0
  let server: Server
  const answer = async (socket: Socket) => {
    socket.write(encodeFrame(kinds.ok))
    for (const frame of says()) {
      if (socket.destroyed) return
      said += frame.length
      if (!socket.write(frame)) await Promise.race([once(socket, 'drain'), once(socket, 'close')])
    }
    socket.end()
  }
  before(async () => {
    server = createServer((socket) => {
      socket.on('error', () => {}).once('data', () => void answer(socket).catch(() => {}))
    }).listen(path)
    await once(server, 'listening')
  })
  after(() => {
    server.close()
    rmSync(directory, { recursive: true })
  })
  const saying = (frames: () => Iterable<Buffer>) => {
    said = 0
    says = frames
    return agentAt(path)
  }
  const forEver = (frame: Buffer, before: Buffer[] = []) =>
    function* () {
      yield* before
      for (;;) yield frame
    }
  const isBad = { name: 'BadFrame' }

  test('a list of jobs ends where one says too much of itself, or they are too many', async () => {
    await assert.rejects(saying(forEver(job(4096))).jobs.list(), isBad)
    assert.ok(said < 16 * 1024 * 1024)
    await assert.rejects(saying(forEver(job(100_000))).jobs.list(), isBad)
    assert.ok(said < 1024 * 1024)
  })

  test('a list of sessions has less of their commands when it is long, and ends when it is very long', async () => {
    const text = 'x'.repeat(4096)
    const few = Array.from({ length: 1500 }, () => command(5000, text))
    const [listed] = await saying(() => [session('s'), ...few, encodeFrame(kinds.end)]).sessions.list()
    const lengths = listed!.commands.map((each) => each.text.length)
    assert.deepEqual([lengths.length, lengths[0], lengths.at(-1)], [1500, 4096, 200])
    assert.ok(listed!.commands.every(({ isWholeText }) => !isWholeText))
    const long = function* () {
      for (let n = 0; ; n++) yield n % 4000 === 0 ? session(`s${n}`) : command(5000, text)
    }
    await assert.rejects(saying(long).sessions.list(), { name: 'ListTooLong' })
    await assert.rejects(saying(forEver(command(100_000, 'x'.repeat(100_000)), [session('s')])).sessions.list(), isBad)
    await assert.rejects(saying(forEver(session('x'.repeat(10_000)))).sessions.list(), isBad)
  })

  test('a command is no longer than one can be, and its text is no row of nothing', async () => {
    const { sessions } = saying(forEver(encodeFrame(kinds.text, Buffer.alloc(60_000)), [command(2 ** 32 - 1)]))
    await assert.rejects(sessions.command('s', 'c'), isBad)
    assert.ok(said < 1024 * 1024)
    await assert.rejects(saying(forEver(encodeFrame(kinds.text), [command(1)])).sessions.command('s', 'c'), isBad)
  })
})
