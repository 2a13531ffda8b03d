// Tests the tickets that control signs for calls into sandboxes, and the keys with which it signs them.
import assert from 'node:assert/strict'
import { createHmac, createPublicKey } from 'node:crypto'
import { suite, test } from 'node:test'
import { createLog, silentLog } from '#src/kit/log.ts'
import { pathOfSignedFile } from '#src/wire/access.ts'
import { digestOfCall, keyIdOf, readTicket, type Ticket, type TicketKey, ticketLastsMs } from '#src/wire/ticket.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys, organizations } from '#test/control/people.ts'
import { connectRunner } from '#test/control/simulated-runner.ts'
import { TestClock } from '#test/control/test-clock.ts'
import { openTestDatabase } from '#test/control/test-database.ts'
import { createEncryption, newEncryptionKey, readEncryptionKey } from '../storage/encryption.ts'
import { Tickets } from './tickets.ts'

const toolbox = { kind: 'toolbox' } as const
const box = { sandboxId: 'box', organizationId: 'org', allowed: toolbox }

const readBy = (text: string, known: readonly TicketKey[]): Ticket | undefined => {
  const key = known.find(({ id }) => id === keyIdOf(text))
  if (key === undefined) return undefined
  return readTicket(text, createPublicKey({ key: Buffer.from(key.publicKey, 'base64'), type: 'spki', format: 'der' }))
}

const keysOf = async (app: TestControl): Promise<TicketKey[]> =>
  (await app.as('proxy').get('/proxy/ticket-keys')).body.keys

const withBox = async (check: (app: TestControl, id: string) => Promise<void>) => {
  await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
  await using _runner = await connectRunner(app)
  const { body } = await app.as('member').post('/sandbox', { name: 'box', public: true })
  await check(app, body.id)
}

const bearer = { kind: 'bearer', token: keys.member }

suite('the ticket in a reply to a gate', () => {
  const ticketOf = async (app: TestControl, sandboxIdOrName: string, credential: object, more = {}) => {
    const question = { sandboxIdOrName, credentials: [credential], countsAsActivity: false, ...more }
    const { body } = await app.as('proxy').post('/proxy/access', question)
    return readBy(body.ticket, await keysOf(app))
  }

  test('a ticket names its sandbox, organization and runner, and is valid for half a minute', () =>
    withBox(async (app, id) => {
      const runnerAddress = 'unix:/simulated/runner.sock'
      const whose = { sandboxId: id, organizationId: organizations.ours, runnerAddress }
      const expiresAt = app.clock.now().getTime() + ticketLastsMs
      assert.deepEqual(await ticketOf(app, 'box', bearer), { ...whose, allowed: toolbox, expiresAt })
    }))

  test('a ticket allows only what was requested: the toolbox, one port, or one signed file URL', () =>
    withBox(async (app, id) => {
      const port = { kind: 'port', port: 3000 }
      assert.deepEqual((await ticketOf(app, id, bearer, { port: 3000 }))?.allowed, port)
      const nobody = { sandboxIdOrName: id, credentials: [], countsAsActivity: false, port: 3000 }
      const open = await app.as('proxy').post('/proxy/access', nobody)
      assert.equal(open.body.openedBy, 'public')
      assert.deepEqual(readBy(open.body.ticket, await keysOf(app))?.allowed, port)

      const key = (await app.as('member').get(`/sandbox/${id}/signing-key`)).body as string
      for (const [method, call] of [
        ['GET', '/files/download?path=%2Ftmp%2Fa%20b'],
        ['POST', '/files/upload-v2?path=%2Ftmp%2Fa%20b'],
      ] as const) {
        const mac = createHmac('sha256', key).update(`v1:files:${method}:/tmp/a b:0`).digest('base64url')
        const signed = { kind: 'file-signature', method, path: '/tmp/a b', expires: '0', signature: `v1_${mac}` }
        const allowed = (await ticketOf(app, id, signed))?.allowed
        assert.deepEqual(allowed, { kind: 'call', digest: digestOfCall(method, call) })
        assert.equal(pathOfSignedFile(method, '/tmp/a b'), call)
      }
    }))

  test('GET /proxy/ticket-keys returns only public keys, and answers 403 to users and 401 to runners', () =>
    withBox(async (app) => {
      const told = await keysOf(app)
      assert.equal(told.length, 1)
      assert.deepEqual(Object.keys(told[0]!).sort(), ['id', 'publicKey'])
      const der = Buffer.from(told[0]!.publicKey, 'base64')
      assert.equal(createPublicKey({ key: der, type: 'spki', format: 'der' }).asymmetricKeyType, 'ed25519')
      assert.equal((await app.as('nobody').get('/proxy/ticket-keys')).status, 401)
      assert.equal((await app.as('owner').get('/proxy/ticket-keys')).status, 403)
      assert.equal((await app.as('runner').get('/proxy/ticket-keys')).status, 401)
    }))
})

suite('signing a ticket', () => {
  test('calls to one sandbox reuse a ticket for half of its lifetime; then control signs a new ticket', async () => {
    await using app = await startControl()
    const tickets = await Tickets.open(app.parts)
    const first = tickets.sign(box)
    assert.equal(tickets.sign({ ...box }), first)
    const others = [
      { ...box, sandboxId: 'other' },
      { ...box, organizationId: 'other' },
      { ...box, allowed: { kind: 'port', port: 80 } as const },
    ]
    assert.equal(new Set([first, ...others.map((each) => tickets.sign(each))]).size, 4)
    app.clock.advance({ milliseconds: ticketLastsMs / 2 })
    const next = readBy(tickets.sign(box), await tickets.listKeys())
    assert.equal(next?.expiresAt, app.clock.now().getTime() + ticketLastsMs)
    app.clock.advance({ hours: -1 })
    const afterStep = readBy(tickets.sign(box), await tickets.listKeys())
    assert.equal(afterStep?.expiresAt, app.clock.now().getTime() + ticketLastsMs)
  })
})

suite('the keys of tickets', () => {
  const newEncryption = () => createEncryption([readEncryptionKey(newEncryptionKey())!])

  const setUp = async () => {
    const opened = await openTestDatabase()
    const clock = new TestClock()
    const parts = { database: opened.database, clock, encryption: newEncryption(), log: silentLog() }
    return { parts, clock, database: opened.database, [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose]() }
  }

  test('all control processes share the keys that sign tickets, and these keys are encrypted in the database', async () => {
    await using sides = await setUp()
    const opened = await Promise.all([Tickets.open(sides.parts), Tickets.open(sides.parts)])
    const known = await opened[0]!.listKeys()
    assert.equal(known.length, 1)
    for (const tickets of opened) assert.equal(readBy(tickets.sign(box), known)?.sandboxId, 'box')
    const [row] = await sides.database.sql<{ private_key: string }[]>`select private_key from ticket_keys`
    assert.match(row!.private_key, /^v1\.[0-9a-f]{8}\./)
  })

  test('keys that sign tickets are replaced after a month; gates accept a replaced key for one more day', async () => {
    await using sides = await setUp()
    const [tickets, other] = [await Tickets.open(sides.parts), await Tickets.open(sides.parts)]
    const former = tickets.sign(box)
    sides.clock.advance({ hours: 29 * 24 })
    await tickets.renew()
    assert.equal(keyIdOf(tickets.sign(box)), keyIdOf(former))
    sides.clock.advance({ hours: 24 })
    await tickets.renew()
    assert.notEqual(keyIdOf(tickets.sign(box)), keyIdOf(former))
    // The process `other` signs with the former key until it reads the keys from the database.
    assert.equal(keyIdOf(other.sign(box)), keyIdOf(former))
    assert.ok(readBy(other.sign(box), await tickets.listKeys()))
    await other.renew()
    assert.equal(keyIdOf(other.sign(box)), keyIdOf(tickets.sign(box)))
    sides.clock.advance({ hours: 24 })
    await tickets.renew()
    assert.equal(readBy(former, await tickets.listKeys()), undefined)
    assert.ok(readBy(tickets.sign(box), await other.listKeys()))
  })

  test('a control process with another encryption key makes its own ticket key; gates accept both keys', async () => {
    await using sides = await setUp()
    const right = await Tickets.open(sides.parts)
    const wrong = await Tickets.open({ ...sides.parts, encryption: newEncryption() })
    assert.notEqual(keyIdOf(wrong.sign(box)), keyIdOf(right.sign(box)))
    const known = await right.listKeys()
    for (const tickets of [right, wrong]) assert.ok(readBy(tickets.sign(box), known))
  })

  test('if an operator deletes all keys that sign tickets, control makes a new one within an hour', async () => {
    await using sides = await setUp()
    const tickets = await Tickets.open(sides.parts)
    const former = tickets.sign(box)
    await sides.database.sql`delete from ticket_keys`
    sides.clock.advance({ hours: 1 })
    await tickets.renew()
    const known = await tickets.listKeys()
    assert.equal(readBy(former, known), undefined)
    assert.ok(readBy(tickets.sign(box), known))
  })

  test('control logs a ticket key with an unreadable public part, signs nothing with it and does not list it', async () => {
    await using sides = await setUp()
    const lines: { keyId?: string }[] = []
    const log = createLog('control', 'warn', { write: (line) => void lines.push(JSON.parse(line)) })
    const damaged = keyIdOf((await Tickets.open(sides.parts)).sign(box))
    await sides.database.sql`update ticket_keys set public_key = 'bm8ga2V5'`
    const tickets = await Tickets.open({ ...sides.parts, log })
    assert.notEqual(keyIdOf(tickets.sign(box)), damaged)
    const known = await tickets.listKeys()
    assert.equal(known.length, 1)
    assert.ok(readBy(tickets.sign(box), known))
    assert.ok(lines.some(({ keyId }) => keyId === damaged))
  })
})
