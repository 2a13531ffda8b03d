// Tests clients that send malformed or endless data, or read nothing. Meanwhile the gateway must serve other clients and use little
// memory.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { after, before, suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { ClientChannel } from 'ssh2'
import { startTestGateway, type TestClient, type TestGateway, toEnd, token } from './testing/gateway.ts'

let gateway: TestGateway

before(async () => {
  gateway = await startTestGateway({ signInMs: 10_000, mostStrangersOfOne: 16 })
})
after(async () => await gateway?.[Symbol.asyncDispose]())

/** An internal object of the library `ssh2`. With it, a test sends messages that no honest client sends. */
type Protocol = {
  channelData: (channel: number, data: Buffer) => void
  session: (channel: number, window: number, packet: number) => void
  rekey: () => void
}
const protocolOf = ({ client }: TestClient) => (client as unknown as { _protocol: Protocol })._protocol
const socketOf = ({ client }: TestClient) => (client as unknown as { _sock: Socket })._sock
const numberOf = (channel: ClientChannel) => (channel as unknown as { outgoing: { id: number } }).outgoing.id

/** Connects from a different address than the honest clients, so as not to use up the limit of their address. */
const stranger = (): Socket =>
  connect({ host: '127.0.0.1', port: gateway.port, localAddress: '127.0.0.2' }).on('error', () => undefined)

const untilClosed = async (socket: Socket) => {
  socket.resume()
  if (!socket.closed) await once(socket, 'close')
}

/** Resolves when the connection of a client is gone, with or without an error. */
const closing = ({ client }: TestClient) => new Promise<void>((resolve) => client.once('close', () => resolve()))

const serves = async () => {
  using client = await gateway.connect()
  assert.equal((await client.run('echo served')).out, 'served\n')
}

/** Waits until a file does not grow any more. Returns its size. */
const settledSize = async (path: string): Promise<number> => {
  while (!existsSync(path)) await pause(20)
  for (let last = -1; ; ) {
    const { size } = statSync(path)
    if (size === last && size > 0) return size
    last = size
    await pause(500)
  }
}

suite('hostile SSH clients before the sign-in', () => {
  test('random bytes, half handshakes and huge banners end only their own SSH connection', async () => {
    using honest = await gateway.connect()
    const greeting = 'SSH-2.0-OpenSSH_9.9\r\n'
    const attacks: (string | Buffer)[] = [
      randomBytes(100_000),
      'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
      `SSH-2.0-${'x'.repeat(100_000)}`,
      `${'x\r\n'.repeat(5000)}`,
      'SSH-1.5-old\r\n',
      Buffer.concat([Buffer.from(greeting), randomBytes(50_000)]),
      Buffer.concat([Buffer.from(greeting), Buffer.from('ffffffff00000000', 'hex')]),
      Buffer.concat([Buffer.from(greeting), Buffer.from('00000000', 'hex'), Buffer.alloc(1000)]),
      greeting,
      '',
    ]
    const endOf = async (attack: string | Buffer) => {
      const socket = stranger()
      await once(socket, 'connect')
      socket.write(attack)
      await untilClosed(socket)
    }
    await Promise.all(attacks.map(endOf))
    assert.equal((await honest.run('echo undisturbed')).out, 'undisturbed\n')
  })

  test('SSH connections above the limit of one address are closed, and clients of other addresses are served', async () => {
    const flood = Array.from({ length: 200 }, stranger)
    const refused = flood.map((socket) => untilClosed(socket))
    await serves()
    // The gateway closes 184 connections. The other 16, the limit of one address, may still sign in.
    let count = 0
    await new Promise<void>((resolve) => {
      for (const closed of refused) {
        closed.then(() => {
          count += 1
          if (count === 200 - 16) resolve()
        })
      }
    })
    for (const socket of flood) socket.destroy()
  })

  test('an address that sent 20 wrong SSH tokens may not connect, and clients of other addresses are served', async () => {
    const wrong = (tries: number) => `ssh_${String(tries).padStart(32, '0')}`
    const localAddress = '127.0.0.3'
    for (let tries = 0; tries < 20; tries += 5) {
      await Promise.all(
        [0, 1, 2, 3, 4].map((more) =>
          assert.rejects(gateway.connect(wrong(tries + more), { localAddress }), /authentication methods failed/),
        ),
      )
    }
    await assert.rejects(gateway.connect(token, { localAddress }))
    await serves()
  })
})

suite('hostile SSH clients after the sign-in', () => {
  test('an SSH client may have 100 open channels; after it has closed a channel, it may open a new one', async () => {
    using client = await gateway.connect()
    const opened: ClientChannel[] = []
    let refused = 0
    await Promise.all(
      Array.from({ length: 1000 }, () =>
        client.start('exec sleep 60').then(
          (channel) => opened.push(channel),
          () => {
            refused += 1
          },
        ),
      ),
    )
    assert.deepEqual([opened.length, refused], [100, 900])
    const [first] = opened
    const ran = toEnd(first!)
    first!.signal('KILL')
    await ran
    assert.equal((await client.run('echo room')).out, 'room\n')
    await serves()
  })

  test('an SSH client that sends more than SSH’s flow control allows is disconnected', async () => {
    using client = await gateway.connect()
    const channel = await client.start('exec sleep 60')
    // `ssh2` drops data that arrives while the channel's window is exactly 0. Pieces of this size avoid that.
    const piece = Buffer.alloc(30_000)
    const closed = closing(client)
    for (let sent = 0; sent < 10 * 1024 * 1024; sent += piece.length) {
      protocolOf(client).channelData(numberOf(channel), piece)
    }
    await closed
    await serves()
  })

  test('an SSH client that allows only packets of 0 bytes is disconnected', async () => {
    using client = await gateway.connect()
    const closed = closing(client)
    const { _chanMgr: channels } = client.client as unknown as { _chanMgr: { add: (open: () => void) => number } }
    const open = Object.assign(
      (_error: unknown, channel?: ClientChannel) => {
        channel?.on('error', () => undefined)
        const { _protocol: protocol } = client.client as unknown as {
          _protocol: { exec: (channel: number, command: string, wantReply: boolean) => void }
        }
        if (channel !== undefined) protocol.exec(numberOf(channel), 'echo never', false)
      },
      { type: 'session' },
    )
    protocolOf(client).session(channels.add(open as unknown as () => void), 1024 * 1024, 0)
    await closed
    await serves()
  })

  const noisy = (file: string) => `dd if=/dev/zero bs=64k count=2000 2>/dev/null | tee ${file}`

  test('if an SSH client reads nothing, its command waits, and the gateway buffers little output for it', async () => {
    using client = await gateway.connect()
    const file = `${gateway.box.directory}/unread`
    const channel = await client.start(noisy(file))
    // The library `ssh2` announces a window of 2 MiB. This client announces the largest possible window, and then reads nothing.
    const { _protocol: protocol } = client.client as unknown as {
      _protocol: { channelWindowAdjust: (channel: number, bytes: number) => void }
    }
    protocol.channelWindowAdjust(numberOf(channel), 0x7fffffff)
    socketOf(client).pause()
    assert.ok((await settledSize(file)) < 40 * 1024 * 1024)
    await serves()
  })

  test('if an SSH client never finishes a key exchange, its command waits, and little output is buffered', async () => {
    using client = await gateway.connect()
    const file = `${gateway.box.directory}/unfinished`
    const channel = await client.start(`read -r _; ${noisy(file)}`)
    channel.resume()
    const protocol = protocolOf(client)
    const { channelWindowAdjust } = protocol as unknown as { channelWindowAdjust: (id: number, bytes: number) => void }
    channelWindowAdjust.call(protocol, numberOf(channel), 0x7fffffff)
    channel.write('go\n')
    protocol.rekey()
    socketOf(client).write = () => true
    assert.ok((await settledSize(file)) < 40 * 1024 * 1024)
    await serves()
  })

  test('random bytes in place of SSH packets end the connection, and its command gets SIGHUP', async () => {
    using client = await gateway.connect()
    const file = `${gateway.box.directory}/hung-up`
    const channel = await client.start(`trap 'echo hup >${file}; exit' HUP; echo ready; while :; do sleep 0.05; done`)
    await once(channel, 'data')
    const closed = closing(client)
    socketOf(client).write(randomBytes(10_000))
    await closed
    while (!existsSync(file)) await pause(20)
    await serves()
  })
})
