import assert from 'node:assert/strict'
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { keyIdOf, makeTicket, readTicket, type Ticket } from './ticket.ts'

const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const key = { id: 'key-1', privateKey }

/** Option of the library fast-check, which then generates only objects that JSON.parse could return. */
const plain = { noNullPrototype: true }

const tickets: fc.Arbitrary<Ticket> = fc.record(
  {
    sandboxId: fc.string({ minLength: 1, maxLength: 64 }),
    organizationId: fc.string({ minLength: 1, maxLength: 64 }),
    allowed: fc.oneof(
      fc.constant({ kind: 'toolbox' } as const),
      fc.record({ kind: fc.constant('call' as const), digest: fc.stringMatching(/^[\w-]{43}$/) }, plain),
      fc.record({ kind: fc.constant('port' as const), port: fc.integer({ min: 1, max: 65_535 }) }, plain),
    ),
    expiresAt: fc.nat(),
  },
  plain,
)

/** Returns a text with the form and a valid signature of a ticket, but with any payload. */
const signed = (payload: string, by: KeyObject = privateKey): string => {
  const text = `v1.key-1.${Buffer.from(payload).toString('base64url')}`
  return `${text}.${sign(null, Buffer.from(text), by).toString('base64url')}`
}

suite('tickets of control', () => {
  test('`readTicket` returns the fields that a ticket was made with, and `keyIdOf` the id of its signing key', () => {
    fc.assert(
      fc.property(tickets, (ticket) => {
        const text = makeTicket(ticket, key)
        assert.equal(keyIdOf(text), 'key-1')
        assert.deepEqual(readTicket(text, publicKey), ticket)
      }),
    )
  })

  test('`readTicket` refuses a ticket with a changed letter, without one of its parts, or with text after it', () => {
    const letter = fc.stringMatching(/^[\w.\- =+/]$/)
    fc.assert(
      fc.property(tickets, fc.nat(), letter, (ticket, at, other) => {
        const text = makeTicket(ticket, key)
        const place = at % text.length
        fc.pre(text[place] !== other)
        assert.equal(readTicket(text.slice(0, place) + other + text.slice(place + 1), publicKey), undefined)
        assert.equal(readTicket(text.slice(0, place), publicKey), undefined)
        assert.equal(readTicket(text + other, publicKey), undefined)
      }),
      { numRuns: 500 },
    )
  })

  test('`readTicket` refuses a ticket that was signed by another key, or joined from parts of two tickets', () => {
    const text = makeTicket(ticketOf({}), key)
    assert.equal(readTicket(text, generateKeyPairSync('ed25519').publicKey), undefined)
    const [one, other] = [text.split('.'), makeTicket(ticketOf({ sandboxId: 'other' }), key).split('.')]
    assert.equal(readTicket([...one.slice(0, 2), other[2], one[3]].join('.'), publicKey), undefined)
    assert.equal(readTicket(text.replace('key-1', 'key-2'), publicKey), undefined)
  })

  test('`readTicket` refuses a signed payload with unknown or missing fields, or a value out of range', () => {
    const good = ticketOf({})
    assert.deepEqual(readTicket(signed(JSON.stringify(good)), publicKey), good)
    for (const payload of [
      '',
      '{',
      'null',
      '[]',
      JSON.stringify({ ...good, more: 1 }),
      JSON.stringify({ ...good, sandboxId: '' }),
      JSON.stringify({ ...good, organizationId: 'x'.repeat(65) }),
      JSON.stringify({ ...good, expiresAt: '1' }),
      JSON.stringify({ ...good, expiresAt: -1 }),
      JSON.stringify({ ...good, allowed: { kind: 'all' } }),
      JSON.stringify({ ...good, allowed: { kind: 'port', port: 0 } }),
      JSON.stringify({ ...good, allowed: { kind: 'toolbox', port: 80 } }),
    ]) {
      assert.equal(readTicket(signed(payload), publicKey), undefined, payload)
    }
  })

  test('`readTicket` returns undefined for a text of any length that is not a ticket, and never throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.string({ unit: 'binary' })), (text) => {
        assert.equal(readTicket(text, publicKey), undefined)
        keyIdOf(text)
      }),
    )
    assert.equal(readTicket(`v1.key-1.${'A'.repeat(1_000_000)}.${'A'.repeat(86)}`, publicKey), undefined)
    assert.equal(keyIdOf(`v1.key-1.${'A'.repeat(1_000_000)}.${'A'.repeat(86)}`), undefined)
  })

  test('a key that is not Ed25519 verifies no ticket, and a public key cannot sign tickets', () => {
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const text = makeTicket(ticketOf({}), key)
    assert.equal(readTicket(text, rsa.publicKey), undefined)
    // A gate has only the public key. Node refuses to load this key as a private key, so a gate cannot make tickets.
    const der = publicKey.export({ type: 'spki', format: 'der' })
    assert.throws(() => createPrivateKey({ key: der, type: 'pkcs8', format: 'der' }))
    assert.equal(createPublicKey({ key: der, type: 'spki', format: 'der' }).asymmetricKeyType, 'ed25519')
  })
})

const ticketOf = (more: Partial<Ticket>): Ticket => ({
  sandboxId: 'box',
  organizationId: 'org',
  allowed: { kind: 'toolbox' },
  expiresAt: 1,
  ...more,
})
