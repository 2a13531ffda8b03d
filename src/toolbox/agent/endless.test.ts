// Hostile code has replaced the agent and sends endless answers. The gate keeps only a bounded part of them in memory.
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

suite('an agent that sends answers without end', () => {
  const directory = mkdtempSync(join(tmpdir(), 'alcove-endless-'))
  const path = join(directory, 'agent')
  let says: () => Iterable<Buffer>
  let said = 0
  let ok = encodeFrame(kinds.ok)
  const silent = new Set<Socket>()
  let server: Server
  const answer = async (socket: Socket) => {
    socket.write(ok)
    for (const frame of says()) {
      if (socket.destroyed) return
      said += frame.length
      if (!socket.write(frame)) await Promise.race([once(socket, 'drain'), once(socket, 'close')])
    }
    if (isSilent) silent.add(socket)
    else socket.end()
  }
  let isSilent = false
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

  test('`jobs.list` refuses an agent’s list of jobs that is too long, or in which one job is too large', async () => {
    await assert.rejects(saying(forEver(job(4096))).jobs.list(), isBad)
    assert.ok(said < 16 * 1024 * 1024)
    await assert.rejects(saying(forEver(job(100_000))).jobs.list(), isBad)
    assert.ok(said < 1024 * 1024)
  })

  test('`sessions.list` shortens command texts at the end of a long list, and refuses a list without end', async () => {
    const text = 'x'.repeat(4096)
    const few = Array.from({ length: 1500 }, () => command(5000, text))
    const [listed] = await saying(() => [session('s'), ...few, encodeFrame(kinds.end)]).sessions.list()
    const lengths = listed!.commands.map((each) => each.text.length)
    assert.deepEqual([lengths.length, lengths[0], lengths.at(-1)], [1500, 4096, 200])
    assert.ok(listed!.commands.every(({ isWholeText }) => !isWholeText))
    const control = Array.from({ length: 300 }, () => command(5000, '\x01'.repeat(4096)))
    const [inJson] = await saying(() => [session('s'), ...control, encodeFrame(kinds.end)]).sessions.list()
    assert.equal(inJson!.commands.filter((each) => each.text.length === 4096).length, 170)
    const long = function* () {
      for (let n = 0; ; n++) yield n % 4000 === 0 ? session(`s${n}`) : command(5000, text)
    }
    await assert.rejects(saying(long).sessions.list(), { name: 'ListTooLong' })
    await assert.rejects(saying(forEver(command(100_000, 'x'.repeat(100_000)), [session('s')])).sessions.list(), isBad)
    await assert.rejects(saying(forEver(session('x'.repeat(10_000)))).sessions.list(), isBad)
  })

  test('`sessions.command` refuses an agent’s answer that is too long or has endless empty frames', async () => {
    const { sessions } = saying(forEver(encodeFrame(kinds.text, Buffer.alloc(60_000)), [command(2 ** 32 - 1)]))
    await assert.rejects(sessions.command('s', 'c'), isBad)
    assert.ok(said < 1024 * 1024)
    await assert.rejects(saying(forEver(encodeFrame(kinds.text), [command(1)])).sessions.command('s', 'c'), isBad)
  })

  test('the gate refuses an agent’s frames LOST and CREDIT with the number 0, as they could come without end', async () => {
    const lost = encodeFrame(kinds.lost, new FieldWriter().u64(0).done())
    const follow = async () => {
      for await (const _ of saying(forEver(lost)).jobs.attach('j', 0));
    }
    await assert.rejects(follow(), isBad)
    ok = encodeFrame(kinds.ok, new FieldWriter().u32(1).done())
    const credit = encodeFrame(kinds.credit, new FieldWriter().u32(0).done())
    const command = await saying(forEver(credit)).exec({ argv: ['true'], env: {}, user: 'root', mergeOutput: true })
    ok = encodeFrame(kinds.ok)
    await assert.rejects(command.exit, isBad)
  })

  test('an agent that sends small frames without end does not block the gate’s event loop', async () => {
    const small = encodeFrame(kinds.stdout, Buffer.of(1))
    const events = saying(() => [Buffer.concat(Array(20_000).fill(small)), encodeFrame(kinds.end)]).jobs.attach('j', 0)
    let turns = 0
    const turn = () => {
      turns++
      next = setImmediate(turn)
    }
    let next = setImmediate(turn)
    let bytes = 0
    for await (const event of events) if (event.type === 'output') bytes += event.data.length
    clearImmediate(next)
    assert.equal(bytes, 20_000)
    assert.ok(turns > 100, String(turns))
  })

  test('an agent that never answers cannot keep more than a limited number of the gate’s connections open', async () => {
    isSilent = true
    const agent = saying(() => [])
    const calls: Promise<unknown>[] = []
    while (calls.length < 1100) {
      calls.push(agent.jobs.list().catch((error: Error) => error.name))
      // Wait until the server has accepted most connections. If too many connections wait, the kernel refuses the next one.
      while (calls.length - silent.size > 100) await new Promise(setImmediate)
    }
    await assert.rejects(agent.jobs.list(), { name: 'AgentRefused', stage: 'busy', errno: 'EAGAIN' })
    await assert.rejects(agent.exec({ argv: ['true'], env: {}, user: 'root', mergeOutput: true }), {
      name: 'AgentRefused',
    })
    while (silent.size < 1100) await new Promise(setImmediate)
    isSilent = false
    for (const socket of silent) socket.destroy()
    assert.deepEqual([...new Set(await Promise.all(calls))], ['AgentGone'])
    // Wait until the event loop has closed the connections.
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
    assert.deepEqual(await saying(() => [encodeFrame(kinds.end)]).jobs.list(), [])
  })
})
