// Tests a gate with two sandboxes: one sandbox's agent was replaced by a hostile program, the other sandbox's agent works
// correctly.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { type Agent, agentAt } from './agent.ts'
import { openAhead } from './connection.ts'
import { encodeFrame, FieldWriter, kinds } from './frames.ts'
import { NativeAgent } from './testing/native-agent.ts'

const startHostile = async (behave: (socket: Socket) => void) => {
  const directory = mkdtempSync(join(tmpdir(), 'alcove-hostile-'))
  const path = join(directory, 'agent.sock')
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket)).on('error', () => undefined)
    // Become hostile only at the first request: the gate opens some connections ahead, and sends nothing on them yet.
    socket.once('data', () => behave(socket))
  })
  server.listen(path)
  await once(server, 'listening')
  return {
    agent: agentAt(path),
    /** Settles when no connection to this server is open. */
    allClosed: async () => {
      while (open.size > 0) await Promise.all([...open].map((socket) => once(socket, 'close')))
    },
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

const spec = { user: userInfo().username, cwd: '/', argv: ['echo', 'honest'], env: {}, mergeOutput: true }

const outputOf = async (agent: Agent): Promise<string> => {
  const command = await agent.exec(spec)
  const pieces: Buffer[] = []
  for await (const { data } of command) pieces.push(data)
  await command.exit
  return Buffer.concat(pieces).toString()
}

const drained = async (agent: Agent): Promise<void> => {
  const command = await agent.exec(spec)
  command.exit.catch(() => undefined)
  for await (const _ of command);
}

const askAll = (agent: Agent): Promise<unknown>[] => [
  drained(agent),
  agent.info(),
  agent.dial(3000).then((socket) => socket.on('error', () => undefined).destroy()),
  agent.files(spec.user).stat('/'),
]

const head = (size: number, kind: number): Buffer => {
  const header = Buffer.alloc(5)
  header.writeUInt32LE(size)
  header[4] = kind
  return header
}

const ok = encodeFrame(kinds.ok, new FieldWriter().u32(1).done())

const behaviours: Record<string, (socket: Socket) => void> = {
  'announces a frame of 4 GiB': (socket) => void socket.write(head(0xffff_ffff, kinds.ok)),
  'answers with a kind that does not exist': (socket) => void socket.write(encodeFrame(0xff)),
  'answers with noise': (socket) => void socket.write(Buffer.alloc(65_536, 0xa5)),
  'refuses at a stage that does not exist': (socket) =>
    void socket.write(encodeFrame(kinds.failed, Buffer.alloc(5, 0xee))),
  'closes in the middle of a header': (socket) => void socket.end(head(100, kinds.ok).subarray(0, 3)),
  'closes in the middle of a frame': (socket) => void socket.end(Buffer.concat([head(100, kinds.ok), Buffer.alloc(7)])),
  'resets in the middle of an answer': (socket) => void socket.write(ok, () => socket.destroy()),
  'answers twice': (socket) => void socket.end(Buffer.concat([ok, ok, ok])),
}

suite('a hostile agent next to a correct agent', () => {
  for (const [name, behave] of Object.entries(behaviours)) {
    test(`an agent that ${name} does not delay another sandbox’s agent, and no connection stays open`, {
      timeout: 15_000,
    }, async () => {
      await using hostile = await startHostile(behave)
      await using honest = await NativeAgent.start()
      const before = honest.openDescriptors
      {
        using _ahead = openAhead()
        const asked = Array.from({ length: 8 }, () => askAll(hostile.agent)).flat()
        const settled = Promise.allSettled(asked)
        for (let call = 0; call < 8; call += 1) assert.equal(await outputOf(honest.agent), 'honest\n')
        const refused = (await settled).filter(({ status }) => status === 'rejected')
        assert.ok(refused.length > 0, 'what it said was believed')
      }
      await hostile.allClosed()
      await honest.downTo(before)
    })
  }
})
