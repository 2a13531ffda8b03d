import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Webhook as SvixWebhook } from 'svix'
import { verify } from '#test/control/webhook-receiver.ts'
import { newSecret, signedHeaders } from './signature.ts'

const body = '{"event":"sandbox.created"}'
const message = { id: 'msg_1', at: new Date(), body }

suite('signatures of webhooks', () => {
  test('the libraries standardwebhooks and svix accept our signatures, in webhook-* and svix-* headers', () => {
    const secret = newSecret()
    const headers = signedHeaders([secret], message)
    assert.deepEqual(verify(secret, { text: body, headers }), { event: 'sandbox.created' })
    const only = (prefix: string) =>
      Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith(prefix)))
    assert.deepEqual(Object.keys(only('svix-')), ['svix-id', 'svix-timestamp', 'svix-signature'])
    new SvixWebhook(secret).verify(body, only('svix-'))
    new SvixWebhook(secret).verify(body, only('webhook-'))
  })

  test('the library standardwebhooks refuses a changed body or id, or a signature by another secret', () => {
    const secret = newSecret()
    const headers = signedHeaders([secret], message)
    const refused = (text: string, changed: Record<string, string> = {}, by = secret) =>
      assert.throws(() => verify(by, { text, headers: { ...headers, ...changed } }), /No matching signature/)
    refused(body.replace('created', 'deleted'))
    refused(body, { 'webhook-id': 'msg_2' })
    refused(body, {}, newSecret())
    refused(body, { 'webhook-signature': headers['webhook-signature']?.replace('v1,', 'v2,') ?? '' })
  })

  test('the library standardwebhooks refuses an old webhook, even if an attacker changes its timestamp', () => {
    const secret = newSecret()
    const old = signedHeaders([secret], { ...message, at: new Date(Date.now() - 301_000) })
    assert.throws(() => verify(secret, { text: body, headers: old }), /too old/)
    const fresh = { ...old, 'webhook-timestamp': String(Math.floor(Date.now() / 1000)) }
    assert.throws(() => verify(secret, { text: body, headers: fresh }), /No matching signature/)
    const early = signedHeaders([secret], { ...message, at: new Date(Date.now() + 302_000) })
    assert.throws(() => verify(secret, { text: body, headers: early }), /too new/)
  })

  test('a webhook signed with two secrets passes the library standardwebhooks with either secret', () => {
    const secrets = [newSecret(), newSecret()]
    const headers = signedHeaders(secrets, message)
    for (const secret of secrets) verify(secret, { text: body, headers })
  })
})
