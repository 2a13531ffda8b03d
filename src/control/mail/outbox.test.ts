// Tests the outbox of mails with a real database and a real SMTP server on 127.0.0.1.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { readSmtpAddress } from '#src/kit/smtp-address.ts'
import { type MailServer, startMailServer } from '#test/control/mail-server.ts'
import { TestClock } from '#test/control/test-clock.ts'
import { openTestDatabase, type TestDatabase } from '#test/control/test-database.ts'
import { openDatabase } from '../storage/database.ts'
import { type Outbox, openOutbox } from './outbox.ts'
import { queueMail, takeBackMail } from './service.ts'
import type { NewMail } from './store.ts'
import { logTransport, type MailTransport, smtpTransport } from './transport.ts'

const transportTo = ({ url }: MailServer): MailTransport => {
  const address = readSmtpAddress(url, 'Alcove <alcove@example.com>')
  assert.ok(typeof address !== 'string')
  return smtpTransport(address)
}

type Post = AsyncDisposable & {
  opened: TestDatabase
  clock: TestClock
  outbox: Outbox
  queue: (mail?: Partial<NewMail>) => Promise<void>
  waiting: () => Promise<number>
}

const openPost = async (transport: MailTransport): Promise<Post> => {
  const opened = await openTestDatabase()
  const { database } = opened
  const clock = new TestClock()
  const outbox = openOutbox({ database, clock, log: silentLog(), transport }, { sweepSeconds: 0 })
  const standard = {
    about: 'it',
    recipient: 'ada@example.com',
    subject: 'Hello',
    body: 'Good morning.\n',
    userId: 'ada',
  }
  return {
    opened,
    clock,
    outbox,
    queue: (mail) =>
      database.transaction((transaction) => queueMail(transaction, { ...standard, ...mail }, clock.now())),
    waiting: async () => {
      const [row] = await database.sql<[{ count: number }]>`select count(*) from mail_outbox`
      return row.count
    },
    [Symbol.asyncDispose]: async () => {
      await outbox.close()
      await opened[Symbol.asyncDispose]()
    },
  }
}

const subjectOf = (raw: string) => /^Subject: (.*(?:\r\n[ \t].*)*)$/m.exec(raw)?.[1]

suite('mail by SMTP', () => {
  test('a mail is sent once, unchanged, and then leaves the outbox', async () => {
    await using server = await startMailServer()
    await using post = await openPost(transportTo(server))
    await post.queue({ subject: 'Einladung für Ada', body: '.a line with a dot\n\nGrüße\n' })
    await Promise.all([post.outbox.deliver(), post.outbox.deliver()])
    await post.outbox.deliver()
    assert.equal(server.received.length, 1)
    const [{ from, to, raw }] = server.received as [(typeof server.received)[0]]
    assert.deepEqual([from, to], ['alcove@example.com', ['ada@example.com']])
    assert.match(raw, /^From: Alcove <alcove@example\.com>\r?$/m)
    assert.match(raw, /^To: ada@example\.com\r?$/m)
    assert.match(raw, /^Auto-Submitted: auto-generated\r?$/m)
    assert.match(raw, /^Message-ID: <[0-9a-f-]{36}@example\.com>\r?$/m)
    assert.match(subjectOf(raw) ?? '', /^=\?UTF-8\?Q\?Einladung_f=C3=BCr_Ada\?=/)
    assert.match(raw, /\r\n\r\n\.a line with a dot\r\n\r\nGr=C3=BC=C3=9Fe/)
    assert.equal(await post.waiting(), 0)
  })

  test('a mail is not sent if its transaction was rolled back, or if the mail was withdrawn', async () => {
    await using server = await startMailServer()
    await using post = await openPost(transportTo(server))
    const { database } = post.opened
    const undone = database.transaction(async (transaction) => {
      const mail = { about: 'it', recipient: 'a@b.c', subject: 'x', body: 'x', userId: 'ada' }
      await queueMail(transaction, mail, post.clock.now())
      throw new Error('undone')
    })
    await assert.rejects(undone, /undone/)
    await post.queue({ about: 'gone' })
    await post.queue({ about: 'stays' })
    await database.transaction((transaction) => takeBackMail(transaction, 'gone'))
    await post.outbox.deliver()
    assert.equal(server.received.length, 1)
    assert.equal(await post.waiting(), 0)
  })

  test('a mail that fails is retried after a minute and at growing intervals, and dropped after 8 attempts', async () => {
    await using server = await startMailServer()
    await using post = await openPost(transportTo(server))
    await post.queue()
    let attempts = 0
    server.behave(451)
    const attemptsMade = async () => {
      const [row] = await post.opened.database.sql<{ attempts: number }[]>`select attempts from mail_outbox`
      return row?.attempts
    }
    for (const minutes of [1, 5, 15, 60, 240, 720, 1440]) {
      await post.outbox.deliver()
      attempts += 1
      assert.equal(await attemptsMade(), attempts)
      post.clock.advance({ minutes, seconds: -1 })
      await post.outbox.deliver()
      assert.equal(await attemptsMade(), attempts, `it was tried again before ${minutes} minutes had passed`)
      post.clock.advance({ seconds: 1 })
    }
    await post.outbox.deliver()
    assert.deepEqual([await post.waiting(), server.received.length], [0, 0])
  })

  test('a mail waits while the mail server is down or disconnects, and is sent when the server is back', async () => {
    await using server = await startMailServer()
    await using post = await openPost(transportTo(server))
    await post.queue()
    await post.queue()
    server.behave('hang up')
    await post.outbox.deliver()
    assert.deepEqual([await post.waiting(), server.received.length], [2, 0])
    server.behave('take')
    post.clock.advance({ minutes: 1 })
    await post.outbox.deliver()
    assert.deepEqual([await post.waiting(), server.received.length], [0, 2])
  })

  test('a mail that the mail server refuses for good is dropped immediately, and the next mail is sent', async () => {
    await using server = await startMailServer()
    await using post = await openPost(transportTo(server))
    await post.queue()
    server.behave(550)
    await post.outbox.deliver()
    assert.equal(await post.waiting(), 0)
    server.behave('take')
    await post.queue()
    await post.outbox.deliver()
    assert.equal(server.received.length, 1)
  })

  test('if a process dies while it sends a mail, another process sends it two minutes later with the same id', async () => {
    await using server = await startMailServer()
    const asked: string[] = []
    const dying: MailTransport = {
      send: async ({ id }) => {
        asked.push(id)
        // This delivery never ends and writes nothing more to the database, like the delivery of a killed process.
        await new Promise(() => {})
      },
    }
    await using post = await openPost(dying)
    await post.queue()
    void post.outbox.deliver()
    const { database, clock, log } = { ...post, database: post.opened.database, log: silentLog() }
    const other = openOutbox({ database, clock, log, transport: transportTo(server) }, { sweepSeconds: 0 })
    while (asked.length === 0) await other.deliver()
    await other.deliver()
    assert.deepEqual([server.received.length, await post.waiting()], [0, 1])
    clock.advance({ minutes: 2 })
    await other.deliver()
    assert.deepEqual([server.received.length, await post.waiting()], [1, 0])
    assert.ok(server.received[0]?.raw.includes(`<${asked[0]}@example.com>`))
    await other.close()
  })

  test('two processes that share an outbox send each mail exactly once', async () => {
    await using server = await startMailServer()
    await using post = await openPost(transportTo(server))
    for (let mail = 0; mail < 20; mail += 1) await post.queue({ subject: `number ${mail}` })
    const database = openDatabase(post.opened.url, { max: 2 })
    const parts = { database, clock: post.clock, log: silentLog(), transport: transportTo(server) }
    const other = openOutbox(parts, { sweepSeconds: 0 })
    await Promise.all([post.outbox.deliver(), other.deliver()])
    await other.close()
    await database.close()
    assert.equal(new Set(server.received.map(({ raw }) => subjectOf(raw))).size, 20)
    assert.equal(server.received.length, 20)
  })
})

suite('headers of a mail', () => {
  test('neither the recipient nor the subject of a mail can add a header to the mail', async () => {
    await using server = await startMailServer()
    await using post = await openPost(transportTo(server))
    for (const end of ['\r\n', '\n', '\r', '\u2028', '\u0085', '\0']) {
      const injection = `${end}Bcc: eve@example.com`
      await assert.rejects(post.queue({ subject: `Hello${injection}` }))
      await assert.rejects(post.queue({ recipient: `ada@example.com${injection}` }))
    }
    assert.equal(await post.waiting(), 0)
    // Line breaks in the subject or recipient of a mail must not add a header or a recipient.
    const transport = transportTo(server)
    const mail = { id: 'x', recipient: 'ada@example.com', subject: 'Hello\r\nBcc: eve@example.com', text: 'x' }
    await transport.send(mail)
    await transport.send({ ...mail, recipient: 'ada@example.com\r\nBcc: eve@example.com' }).catch(() => {})
    await transport.send({ ...mail, recipient: 'ada@example.com, eve@example.com' }).catch(() => {})
    for (const { to, raw } of server.received) {
      assert.ok(!to.includes('eve@example.com'), String(to))
      assert.doesNotMatch(raw, /^Bcc:/im)
    }
    assert.ok(server.received.length >= 1)
  })
})

suite('sending mail without a mail server', () => {
  test('without a mail server, each mail is logged completely and leaves the outbox', async () => {
    const lines: unknown[] = []
    const log = { ...silentLog(), info: (line: unknown) => void lines.push(line) } as ReturnType<typeof silentLog>
    await using post = await openPost(logTransport(log))
    await post.queue()
    await post.outbox.deliver()
    assert.equal(await post.waiting(), 0)
    const [{ mailId, ...line }] = lines as [{ mailId: string }]
    assert.match(mailId, /^[0-9a-f-]{36}$/)
    assert.deepEqual(line, { isPrivate: true, recipient: 'ada@example.com', subject: 'Hello', text: 'Good morning.\n' })
  })
})

suite('mails that wait to be sent', () => {
  test('a user who has queued too many mails gets 503; another user’s mails are still queued', async () => {
    await using server = await startMailServer()
    await using post = await openPost(transportTo(server))
    await post.opened.database.sql`
      insert into mail_outbox (about, recipient, subject, body, user_id, next_attempt_at, created_at)
      select 'it', 'x', 'x', 'x', 'greedy', now(), now() from generate_series(1, 999)`
    await post.queue({ userId: 'greedy' })
    await assert.rejects(post.queue({ userId: 'greedy' }), { code: 'unavailable' })
    await post.queue({ userId: 'ada' })
    assert.equal(await post.waiting(), 1001)
  })
})
