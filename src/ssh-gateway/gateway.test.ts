import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { after, before, suite, test } from 'node:test'
import type ssh2 from 'ssh2'
import type { ClientChannel } from 'ssh2'
import { newPrivateKey } from '#src/kit/ssh-key.ts'
import { startTestGateway, type TestGateway, toEnd, token } from './testing/gateway.ts'

let gateway: TestGateway

before(async () => {
  gateway = await startTestGateway({ watchMs: 50 })
})
after(async () => await gateway?.[Symbol.asyncDispose]())

suite('a command over SSH', () => {
  test('an SSH command gets its input and returns output, errors and exit code, all bytes unchanged', async () => {
    using client = await gateway.connect()
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
    const ran = await client.run('cat; echo wrong >&2; exit 5', { input: bytes })
    assert.deepEqual(ran, { out: bytes.toString('latin1'), err: 'wrong\n', code: 5 })
  })

  test('an SSH client can send a signal to its command, and is told which signal ended the command', async () => {
    using client = await gateway.connect()
    const channel = await client.start('exec sleep 60')
    const ran = toEnd(channel)
    channel.signal('TERM')
    assert.deepEqual(await ran, { out: '', err: '', code: null, signal: 'SIGTERM' })
  })

  test('an SSH terminal has the size of the client’s window, also after a change, and receives typed input', async () => {
    using client = await gateway.connect()
    const channel = await client.start('stty size; read -r line; stty size; exit 3', {
      pty: { cols: 91, rows: 33, term: 'vt100' },
    })
    const ran = toEnd(channel)
    await once(channel, 'data')
    channel.setWindow(20, 50, 0, 0)
    channel.write('typed\n')
    const { out, code } = await ran
    assert.match(out, /^33 91\r\n[\s\S]*typed\r\n20 50\r\n$/)
    assert.equal(code, 3)
  })

  test('an SSH command gets variables with valid names, and only a limited number of them', async () => {
    using client = await gateway.connect()
    const env: Record<string, string> = { GREETING: 'hello', 'A=B': 'x', 'A B': 'x' }
    for (let number = 0; number < 1000; number += 1) env[`FLOOD_${number}`] = 'x'.repeat(1000)
    const { out } = await client.run('echo "$GREETING"; env | grep -c ^FLOOD_', { env })
    const [greeting, count] = out.split('\n')
    assert.equal(greeting, 'hello')
    assert.ok(Number(count) > 0 && Number(count) < 64)
  })

  test('the SSH gateway refuses a command that contains a NUL, and an unknown subsystem', async () => {
    using client = await gateway.connect()
    await assert.rejects(client.start('echo a\0b'))
    await assert.rejects(
      new Promise((resolve, reject) => {
        client.client.subsys('netconf', (error, channel) => (error ? reject(error) : resolve(channel)))
      }),
    )
    assert.equal((await client.run('echo still here')).out, 'still here\n')
  })

  test('an SSH command that reads and writes 4 MiB at the same time loses nothing', async () => {
    using client = await gateway.connect()
    const input = Buffer.alloc(4 * 1024 * 1024, 'alcove ')
    const { out, code } = await client.run('cat', { input })
    assert.equal(code, 0)
    assert.ok(Buffer.from(out, 'latin1').equals(input))
  })

  test('if an image lacks the program of an SSH command, the error names the program; the connection stays', async () => {
    using client = await gateway.connect()
    const { err, code } = await client.run('no-such-program')
    assert.match(err, /no-such-program.*not found/)
    assert.equal(code, 127)
  })
})

suite('a port of a sandbox that SSH forwards', () => {
  const listening = async () => {
    const server = createServer({ allowHalfOpen: true }, (connection) => {
      const heard: Buffer[] = []
      connection.on('data', (data: Buffer) => heard.push(data))
      connection.on('end', () => connection.end(Buffer.concat(heard).reverse()))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    return { server, port: (server.address() as AddressInfo).port }
  }

  const dial = (host: string, port: number, client: ssh2.Client) =>
    new Promise<ClientChannel>((resolve, reject) => {
      client.forwardOut('127.0.0.1', 1, host, port, (error, channel) => (error ? reject(error) : resolve(channel)))
    })

  test('a forwarded SSH port passes bytes in both directions, and one direction can end before the other', async () => {
    using client = await gateway.connect()
    const { server, port } = await listening()
    for (const host of ['localhost', '127.0.0.1', '::1']) {
      const channel = await dial(host, port, client.client)
      const ran = toEnd(channel)
      channel.end('abc')
      assert.equal((await ran).out, 'cba', host)
    }
    server.close()
  })

  test('the SSH gateway forwards ports only to a sandbox’s loopback address, and not to closed ports', async () => {
    using client = await gateway.connect()
    const { server, port } = await listening()
    for (const host of ['198.51.100.1', 'example.com', '0.0.0.0', '127.0.0.1.example.com', 'localhost.', '']) {
      await assert.rejects(dial(host, port, client.client), /open failure/i, host)
    }
    await new Promise((resolve) => server.close(resolve))
    await assert.rejects(dial('localhost', port, client.client), /open failure/i)
    assert.equal((await client.run('echo still here')).out, 'still here\n')
  })

  test('the SSH gateway refuses reverse forwarding, Unix sockets and X11, and the connection stays open', async () => {
    using client = await gateway.connect()
    await assert.rejects(
      new Promise((resolve, reject) => {
        client.client.forwardIn('127.0.0.1', 0, (error) => (error ? reject(error) : resolve(undefined)))
      }),
    )
    await assert.rejects(
      new Promise((resolve, reject) => {
        client.client.openssh_forwardOutStreamLocal('/run/x', (error) => (error ? reject(error) : resolve(undefined)))
      }),
    )
    await assert.rejects(client.start('true', { x11: true }))
    assert.equal((await client.run('echo still here')).out, 'still here\n')
  })
})

suite('who may use the SSH gateway, and for how long', () => {
  test('the SSH gateway asks control only about user names that look like tokens, and refuses others itself', async () => {
    const before = gateway.asked.length
    const wrong = `ssh_${'b'.repeat(32)}`
    for (const name of [wrong, 'root', `${token}x`]) {
      await assert.rejects(gateway.connect(name), /authentication methods failed/, name)
    }
    assert.deepEqual(
      gateway.asked.slice(before).filter((asked) => asked !== token),
      [wrong],
    )
  })

  test('a valid SSH token is accepted with every sign-in method that the client offers', async () => {
    const key = newPrivateKey()
    for (const config of [{ password: 'any' }, { privateKey: key }, { tryKeyboard: true }]) {
      using client = await gateway.connect(token, { authHandler: [authOf(config)], ...config } as never)
      assert.equal((await client.run('echo in')).out, 'in\n')
    }
  })

  test('an SSH session ends with a message when its token is revoked or its sandbox has stopped', async () => {
    for (const [letter, end, sentence] of [
      ['c', (name: string) => gateway.tokens.delete(name), /^alcove: The SSH token was revoked or has expired\.\n$/],
      [
        'd',
        (name: string) => gateway.tokens.set(name, { state: 'stopped' }),
        /^alcove: The sandbox is not started: it is stopped\.\n$/,
      ],
    ] as const) {
      const own = `ssh_${letter.repeat(32)}`
      gateway.tokens.set(own, { state: 'started' })
      using client = await gateway.connect(own)
      const closed = once(client.client, 'close')
      const channel = await client.start('echo ready; exec sleep 60')
      const ran = toEnd(channel)
      await once(channel, 'data')
      end(own)
      const { err, code } = await ran
      assert.match(err, sentence)
      assert.equal(code, 255)
      await closed
      gateway.tokens.delete(own)
    }
  })
})

/** Returns the name of the SSH authentication method that a client with this configuration uses. */
const authOf = (config: object) =>
  'password' in config ? 'password' : 'privateKey' in config ? 'publickey' : 'keyboard-interactive'
