import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { type DnsServer, type DnsServerParts, startDnsServer } from './server.ts'

const address = '127.0.0.1'

const question = (name: string, type = 1, id = 7) => {
  const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)])
  return Buffer.from([0, id, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, type, 0, 1])
}

const framed = (message: Buffer) => Buffer.concat([Buffer.from([message.length >> 8, message.length & 255]), message])

const serve = async (parts: Partial<DnsServerParts> = {}): Promise<DnsServer & Disposable> => {
  const server = await startDnsServer({
    address,
    domainsOf: () => ['api.example.com', '*.a.test'],
    lookup: async () => [{ address: '203.0.113.5', ttl: 4000 }],
    open: async (_sandbox, _name, addresses) => addresses,
    ...parts,
  })
  return { ...server, [Symbol.dispose]: server.close }
}

/** Sends these datagrams and returns the answer to the last datagram. No other datagram may have the id of the last datagram. */
const askUdp = async ({ udp }: DnsServer, ...messages: Buffer[]): Promise<Buffer> => {
  const socket = createSocket('udp4')
  try {
    const id = messages.at(-1)?.readUInt16BE(0)
    const answered = new Promise<Buffer>((resolve) =>
      socket.on('message', (message) => message.readUInt16BE(0) === id && resolve(message)),
    )
    for (const message of messages) socket.send(message, udp, address)
    return await answered
  } finally {
    socket.close()
  }
}

/** Resolves when the socket is closed, also if the peer has broken the connection. */
const closed = (socket: Socket) => new Promise((resolve) => socket.once('close', resolve))

/**
 * Sends `chunks` over one TCP connection. Returns the answers that come before the server closes the connection, at most `answers`.
 */
const askTcp = async ({ tcp }: DnsServer, chunks: readonly Buffer[], answers: number): Promise<Buffer[]> => {
  const socket = connect(tcp, address)
  socket.on('error', () => {})
  const found: Buffer[] = []
  let waiting: Buffer = Buffer.alloc(0)
  socket.on('data', (data: Buffer) => {
    waiting = Buffer.concat([waiting, data])
    while (waiting.length >= 2 && waiting.length >= 2 + waiting.readUInt16BE(0)) {
      found.push(waiting.subarray(2, 2 + waiting.readUInt16BE(0)))
      waiting = waiting.subarray(2 + waiting.readUInt16BE(0))
    }
    if (found.length === answers) socket.destroy()
  })
  for (const chunk of chunks) {
    socket.write(chunk)
    await new Promise(setImmediate)
  }
  await closed(socket)
  return found
}

const codeOf = (answer: Buffer) => (answer[3] ?? 0) & 15
const countOf = (answer: Buffer) => answer.readUInt16BE(6)

suite('the resolver for sandboxes with a list of domains', () => {
  test('Alcove’s resolver answers only with addresses that the firewall has opened, and a TTL up to 300 s', async () => {
    const opened: unknown[] = []
    using server = await serve({
      open: async (...all) => {
        opened.push(all)
        return all[2].slice(0, 1)
      },
      lookup: async () => [
        { address: '203.0.113.5', ttl: 4000 },
        { address: '203.0.113.6', ttl: 9000 },
      ],
    })
    const answer = await askUdp(server, question('api.example.com'))
    assert.deepEqual(opened, [[address, 'api.example.com', ['203.0.113.5', '203.0.113.6'], 300]])
    assert.deepEqual([codeOf(answer), countOf(answer), answer.readUInt32BE(answer.length - 10)], [0, 1, 300])
    assert.deepEqual([...answer.subarray(-4)], [203, 0, 113, 5])
  })

  test('Alcove’s resolver answers NXDOMAIN for a domain that is not allowed, and asks no other resolver', async () => {
    using server = await serve({ lookup: () => assert.fail('somebody was asked') })
    for (const name of ['a.test', 'example.com', 'api.example.com.evil.test']) {
      assert.equal(codeOf(await askUdp(server, question(name))), 3, name)
    }
    assert.deepEqual([codeOf(await askUdp(server, question('api.example.com', 28)))], [0], 'AAAA is empty')
  })

  test('if the resolver that Alcove’s resolver asks fails, Alcove’s answer has the DNS code for failure', async () => {
    for (const [code, expected] of [
      ['ENOTFOUND', 3],
      ['ENODATA', 0],
      ['ETIMEOUT', 2],
    ] as const) {
      using server = await serve({ lookup: () => Promise.reject(Object.assign(new Error(code), { code })) })
      const answer = await askUdp(server, question('api.example.com'))
      assert.deepEqual([codeOf(answer), countOf(answer)], [expected, 0])
    }
    using server = await serve({ open: () => Promise.reject(new Error('the set is full')) })
    assert.deepEqual(codeOf(await askUdp(server, question('api.example.com'))), 2, 'not told what is not open')
  })

  test('Alcove’s resolver handles 64 DNS questions of one sandbox at a time, and drops further questions', async () => {
    let asked = 0
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const { promise: full, resolve: isFull } = Promise.withResolvers<void>()
    using server = await serve({
      lookup: async () => {
        if (++asked === 64) isFull()
        await released
        return []
      },
    })
    const many = Array.from({ length: 64 }, () => framed(question('api.example.com')))
    // The questions go over UDP: over TCP, a sandbox could only ask 8 questions at a time, one on each connection.
    const socket = createSocket('udp4')
    for (const message of many) socket.send(message.subarray(2), server.udp, address)
    await full
    assert.equal(codeOf(await askUdp(server, question('api.example.com', 1, 8), question('other.test', 1, 9))), 3)
    assert.equal(asked, 64)
    release()
    socket.close()
    assert.equal(codeOf(await askUdp(server, question('api.example.com', 1, 10))), 0)
  })

  test('Alcove’s resolver answers a sandbox’s DNS question even while 40 other sandboxes flood the resolver', async () => {
    let asked = 0
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const { promise: full, resolve: isFull } = Promise.withResolvers<void>()
    using server = await serve({
      lookup: async (name) => {
        if (name !== 'api.example.com') return [{ address: '203.0.113.5', ttl: 1 }]
        if (++asked === 2048) isFull()
        await released
        return []
      },
    })
    const others = Array.from({ length: 40 }, (_, n) => {
      const socket = createSocket('udp4')
      socket.bind(0, `127.1.0.${n + 1}`)
      return socket
    })
    // The kernel may drop some datagrams when many come at once, so the forty sandboxes send their questions repeatedly.
    const again = setInterval(() => {
      for (const socket of others) {
        for (let n = 0; n < 8; n += 1) socket.send(question('api.example.com'), server.udp, address)
      }
    }, 10)
    try {
      await full
      assert.equal(countOf(await askUdp(server, question('b.a.test', 1, 7))), 1)
    } finally {
      clearInterval(again)
      release()
      for (const socket of others) socket.close()
    }
  })

  test('Alcove’s resolver answers questions over TCP in order, even if questions come in pieces or at once', async () => {
    using server = await serve()
    const [first, second] = [framed(question('api.example.com', 1, 1)), framed(question('b.a.test', 1, 2))]
    const both = Buffer.concat([first, second])
    for (const chunks of [
      [both],
      [...both].map((byte) => Buffer.from([byte])),
      [first.subarray(0, 9), both.subarray(9)],
    ]) {
      assert.deepEqual(
        (await askTcp(server, chunks, 2)).map((answer) => [answer[1], countOf(answer)]),
        [
          [1, 1],
          [2, 1],
        ],
      )
    }
  })

  test('Alcove’s resolver closes a TCP connection with an invalid length or from an unknown address', async () => {
    using server = await serve()
    assert.deepEqual(await askTcp(server, [Buffer.from([0xff, 0xff, 0])], 1), [])
    using unknown = await serve({ domainsOf: () => undefined })
    assert.deepEqual(await askTcp(unknown, [framed(question('api.example.com'))], 1), [])
  })

  test('Alcove’s resolver closes the ninth concurrent TCP connection of a sandbox', async () => {
    using server = await serve()
    const sockets = Array.from({ length: 8 }, () => connect(server.tcp, address))
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    assert.deepEqual(await askTcp(server, [framed(question('api.example.com'))], 1), [])
    const gone = sockets.map(closed)
    for (const socket of sockets) socket.destroy()
    await Promise.all(gone)
  })

  test('Alcove’s resolver keeps running, whatever bytes sandboxes send over UDP and TCP', async () => {
    using server = await serve()
    const bytes = fc.uint8Array({ maxLength: 600, size: 'max' }).map((each) => {
      // The id of the question below begins with a zero byte, so no random message has this id.
      if (each[0] === 0) each[0] = 1
      return Buffer.from(each)
    })
    await fc.assert(
      fc.asyncProperty(fc.array(bytes, { minLength: 1, maxLength: 8 }), async (messages) => {
        assert.equal(codeOf(await askUdp(server, ...messages, question('other.test', 1, 255))), 3)
        const socket = connect(server.tcp, address)
        socket.on('error', () => {})
        socket.resume()
        for (const message of messages) socket.write(message)
        socket.end()
        await closed(socket)
      }),
      { numRuns: 200 },
    )
  })
})
