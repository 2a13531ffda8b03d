// Sends a hostile client's input to an agent with sanitizers. `NativeAgent` fails the test if the sanitizers report an error, or if
// the agent leaks memory or ends by itself.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { userInfo } from 'node:os'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { encodeFrame, FieldWriter, FrameDecoder, kinds, maxPayloadBytes, maxRequestBytes } from './frames.ts'
import { NativeAgent } from './testing/native-agent.ts'
import { provoke } from './testing/provoke.ts'

const kindsSeen = (answers: Buffer): number[] => new FrameDecoder().push(answers).map(({ kind }) => kind)

const exec = (...argv: string[]): Buffer => {
  const body = new FieldWriter().u8(2).string(userInfo().username).string('/').strings(argv).strings(['A=b']).done()
  return encodeFrame(kinds.exec, body)
}

// Any frame except SHUTDOWN, which would end the agent, and a valid DIAL, which would connect to a random port.
const anyFrame = fc
  .tuple(fc.nat(255), fc.uint8Array({ maxLength: 60, size: 'max' }))
  .filter(([kind, payload]) => kind !== kinds.shutdown && !(kind === kinds.dial && payload.length === 2))
  .map(([kind, payload]) => encodeFrame(kind, payload))
const truncatedExec = fc.nat(200).map((size) => exec('/bin/true').subarray(0, size))
const changedExec = fc.tuple(fc.nat(40), fc.nat(255)).map(([at, value]) => {
  const frame = exec('/bin/true', 'argument')
  if (at > 4) frame[at] = value
  return frame
})
const noise = fc.uint8Array({ maxLength: 200, size: 'max' }).map((bytes) => {
  // `bytes[3]` is the highest byte of the frame's length. 0xff makes the agent refuse the frame. With a small length, the agent
  // would wait for the payload.
  if (bytes.length > 3) bytes[3] = 0xff
  return bytes
})

suite('clients that send malformed frames to an agent', () => {
  test('random, cut, changed or misordered frames never crash the agent, and leave no descriptor open', async () => {
    await using native = await NativeAgent.start()
    const before = native.openDescriptors
    const pieces = fc.array(fc.oneof(anyFrame, truncatedExec, changedExec, noise), { minLength: 1, maxLength: 5 })
    await fc.assert(
      fc.asyncProperty(pieces, async (sent) => {
        await provoke(native.socketPath, sent, true)
      }),
      { numRuns: 400 },
    )
    assert.match((await native.agent.info()).bootId, /^[0-9a-f]{32}$/)
    await native.downTo(before)
  })

  test('the agent answers each malformed frame with one FAILED frame and closes the connection', async () => {
    await using native = await NativeAgent.start()
    const tooLarge = Buffer.alloc(5)
    tooLarge.writeUInt32LE(maxPayloadBytes + 1)
    const lyingCount = new FieldWriter().u8(0).string('root').string('/').u32(0xffffffff).done()
    for (const [name, pieces] of Object.entries({
      'a frame that is too large': [tooLarge],
      'a kind that does not exist': [encodeFrame(0x3f)],
      'an exec without fields': [encodeFrame(kinds.exec)],
      'an exec without argv': [
        encodeFrame(kinds.exec, new FieldWriter().u8(0).string('a').string('').u32(0).u32(0).done()),
      ],
      'an exec with a count that lies': [encodeFrame(kinds.exec, lyingCount)],
      'an exec with something behind it': [
        encodeFrame(kinds.exec, Buffer.concat([exec('true').subarray(5), Buffer.of(1)])),
      ],
      'a port that is none': [encodeFrame(kinds.dial, Buffer.of(0, 0))],
      'an info with fields': [encodeFrame(kinds.info, Buffer.of(1))],
      'a request that is too large': Array.from({ length: 9 }, () =>
        encodeFrame(kinds.part, Buffer.alloc(maxRequestBytes / 8)),
      ),
    })) {
      assert.deepEqual(kindsSeen(await provoke(native.socketPath, pieces, false)), [kinds.failed], name)
    }
  })

  test('a client that closes its connection before the agent’s refusal arrives does not affect other clients', async () => {
    await using native = await NativeAgent.start()
    const before = native.openDescriptors
    const named = () => new FieldWriter().string('nobody')
    const ofCommand = () => named().string('nothing')
    const requests = [
      encodeFrame(kinds.sessionList, named().done()),
      encodeFrame(kinds.sessionRemove, named().done()),
      encodeFrame(kinds.sessionExec, ofCommand().u8(0).bytes(Buffer.from('true')).done()),
      encodeFrame(kinds.commandShow, ofCommand().done()),
      encodeFrame(kinds.commandAttach, ofCommand().u64(0).u8(0).done()),
      encodeFrame(kinds.attach, named().u64(0).u8(0).done()),
      encodeFrame(kinds.closeInput, named().done()),
      encodeFrame(kinds.remove, named().done()),
    ]
    // Stop the agent's process, so that it reads these requests only after the clients have closed their connections.
    process.kill(native.pid, 'SIGSTOP')
    try {
      for (const request of requests) {
        const socket = connect(native.socketPath)
        await once(socket, 'connect')
        await new Promise((resolve) => socket.write(request, resolve))
        socket.destroy()
        await once(socket, 'close')
      }
    } finally {
      process.kill(native.pid, 'SIGCONT')
    }
    await native.agent.info()
    await native.downTo(before)
  })

  test('a client that sends more input than the agent allowed gets the frame FAILED, and its command ends', async () => {
    await using native = await NativeAgent.start()
    const input = Array.from({ length: 9 }, () => encodeFrame(kinds.stdin, Buffer.alloc(65536)))
    const seen = kindsSeen(await provoke(native.socketPath, [exec('/bin/sleep', '1000'), ...input], false))
    assert.equal(seen.at(-1), kinds.failed)
  })

  test('a client that sends the agent an unknown signal number gets the frame FAILED, and its command ends', async () => {
    await using native = await NativeAgent.start()
    const wrong = encodeFrame(kinds.kill, Buffer.of(200))
    const seen = kindsSeen(await provoke(native.socketPath, [exec('/bin/sleep', '1000'), wrong], false))
    assert.equal(seen.at(-1), kinds.failed)
  })

  test('the agent refuses connections above its limit, until some of the open connections have closed', async () => {
    await using native = await NativeAgent.start()
    const before = native.openDescriptors
    const idle = await Promise.all(
      Array.from({ length: 1024 }, async () => {
        const socket = connect(native.socketPath)
        socket.on('error', () => {})
        await once(socket, 'connect')
        return socket
      }),
    )
    await assert.rejects(native.agent.info(), { name: 'AgentRefused', stage: 'busy' })
    for (const socket of idle) socket.destroy()
    await native.downTo(before)
    await native.agent.info()
  })
})
