import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { suite, test } from 'node:test'
import { startSides } from '../testing/simulated.ts'
import { openedBy, previewHost, visit } from '../testing/visiting.ts'

const apiKey = `dtn_${'0a'.repeat(32)}`
const token = 'k3-Preview_token-0123456789abcde'
const percent = (text: string, times = 1): string =>
  times === 0
    ? text
    : percent(
        text.replaceAll(/./g, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
        times - 1,
      )

/** Sends a call and returns the headers that the sandbox's server got. */
const seen = async (headers: Record<string, string>, { path = '/', access = {} } = {}) => {
  await using sides = await startSides()
  openedBy(sides, 'preview-header', access)
  const { status } = await visit(sides, { path, headers: { 'x-daytona-preview-token': token, ...headers } })
  return { status, url: sides.seen[0]?.url, headers: sides.seen[0]?.headers ?? {}, asked: sides.asked[0] }
}

suite('credentials of Alcove never reach the server in the sandbox', () => {
  test('no header with a credential reaches the sandbox’s server, however clients encode it', async () => {
    const clothes = {
      plain: apiKey,
      'in other words': `key=${apiKey};x`,
      'percent-encoded': percent(apiKey),
      'percent-encoded twice': percent(apiKey, 2),
      'percent-encoded four times': percent(apiKey, 4),
      'percent-encoded behind what is no UTF-8': `%ff${percent(apiKey)}`,
      'in part percent-encoded': apiKey.replace('_', '%5F'),
      'in other letters': apiKey.toUpperCase(),
      'as Base64': Buffer.from(`user:${apiKey}`).toString('base64'),
      'as Base64 behind a slash': `a/${Buffer.from(apiKey).toString('base64')}`,
      'as Base64 in a path': `/ab/cde/${Buffer.from(apiKey).toString('base64url')}/x`,
      'the token': `a ${token} b`,
      'the token, percent-encoded': percent(token),
      'the token as Base64': Buffer.from(`{"token":"${token}"}`).toString('base64url'),
    }
    for (const [what, value] of Object.entries(clothes)) {
      const { headers } = await seen({ 'x-api-key': value, 'x-forwarded-for': value, 'x-theirs': 'kept' })
      assert.deepEqual([headers['x-api-key'], headers['x-theirs']], [undefined, 'kept'], what)
      assert.equal(headers['x-forwarded-for'], '127.0.0.1', what)
    }
  })

  test('the gate does not find an API key in an unusual encoding, so the key reaches the sandbox’s server', async () => {
    const disguises = {
      'x-hex': Buffer.from(apiKey).toString('hex'),
      'x-entities': apiKey.replaceAll(/./g, (letter) => `&#${letter.charCodeAt(0)};`),
      'x-reversed': [...apiKey].reverse().join(''),
    }
    const { headers } = await seen(disguises)
    for (const [name, value] of Object.entries(disguises)) assert.equal(headers[name], value, name)
  })

  test('the gate removes an Authorization header with a credential of Alcove in any spelling of the scheme', async () => {
    for (const authorization of [
      `Bearer\t${apiKey}`,
      `BEARER   ${apiKey}`,
      `bearer \t ${apiKey}`,
      `Bearer "${apiKey}"`,
      `Token ${apiKey}`,
      apiKey,
      `Basic ${Buffer.from(`x:${apiKey}`).toString('base64')}`,
      `Basic ${Buffer.from(`x:${token}`).toString('base64')}`,
    ]) {
      assert.equal((await seen({ authorization })).headers.authorization, undefined, authorization)
    }
    const ours = { access: { isBearerOurs: true } }
    const jwt = await seen({ authorization: 'Bearer\teyJ.our.jwt' }, ours)
    assert.equal(jwt.headers.authorization, undefined)
    assert.deepEqual(jwt.asked?.credentials[0], { kind: 'bearer', token: 'eyJ.our.jwt' })
    assert.equal((await seen({ authorization: 'Bearer eyJ.their.jwt' })).headers.authorization, 'Bearer eyJ.their.jwt')
    assert.equal((await seen({ authorization: 'Basic dTpw' })).headers.authorization, 'Basic dTpw')
  })

  test('a call with several Authorization headers gets 400, and the sandbox’s server is not called', async () => {
    await using sides = await startSides()
    openedBy(sides, 'public')
    let calls = 0
    sides.inside.call = (_incoming, response) => {
      calls += 1
      response.end()
    }
    const outgoing = request({ port: sides.port, agent: false, headers: { host: previewHost } })
    outgoing.setHeader('Authorization', ['Bearer of-the-app', 'Bearer eyJ.maybe.ours', `Bearer ${apiKey}`])
    const [answer] = (await once(outgoing.end(), 'response')) as [IncomingMessage]
    await once(answer.resume(), 'end')
    assert.deepEqual([answer.statusCode, calls], [400, 0])
  })

  test('the gate removes credentials from cookies, queries and subprotocols, and passes on all other values', async () => {
    const cookie = `a=1; k=${percent(apiKey)}; ${apiKey}=2; t=${token}; b=2`
    assert.equal((await seen({ cookie })).headers.cookie, 'a=1; b=2')
    const protocols = await seen({ 'sec-websocket-protocol': `vite-hmr, ${apiKey}, ${percent(token)}` })
    assert.equal(protocols.headers['sec-websocket-protocol'], 'vite-hmr')
    const names = ['DAYTONA_SANDBOX_AUTH%255fKEY=x', 'daytona_sandbox_auth_key=x', `k=${apiKey}`, `${percent(token)}=1`]
    assert.equal((await seen({}, { path: `/p?a=%20&${names.join('&')}&b` })).url, '/p?a=%20&b')
    assert.equal((await seen({}, { path: `/p?${names[0]}` })).url, '/p')
  })

  test('a Referer with a credential is cut to its origin; with a credential as host, the header is removed', async () => {
    const at = `http://${previewHost}`
    for (const query of [
      `DAYTONA_SANDBOX_AUTH_KEY=${token}`,
      `DAYTONA%5FSANDBOX_AUTH_KEY=other`,
      `DAYTONA%255FSANDBOX_AUTH_KEY=other`,
      `next=${percent(`/?DAYTONA_SANDBOX_AUTH_KEY=other`, 2)}`,
      `k=${percent(apiKey)}`,
    ]) {
      assert.equal((await seen({ referer: `${at}/x?${query}` })).headers.referer, `${at}/`, query)
    }
    assert.equal((await seen({ referer: `${at}/x?a=b` })).headers.referer, `${at}/x?a=b`)
    assert.equal((await seen({ referer: `http://${token}.test/` })).headers.referer, undefined)
    assert.equal((await seen({ origin: `http://${token}.test` })).headers.origin, undefined)
  })

  test('a preview call with a credential in its path gets 400, and the sandbox’s server is not called', async () => {
    for (const path of [`/x/${apiKey}`, `/${percent(token)}/y`]) {
      const { status, url } = await seen({}, { path })
      assert.deepEqual([status, url], [400, undefined], path)
    }
  })

  test('the gate removes a header that equals a short preview token, not a header that contains the token', async () => {
    const { headers } = await seen({ 'x-daytona-preview-token': 'a', 'x-theirs': 'abc', 'x-same': 'a' })
    assert.deepEqual([headers['x-theirs'], headers['x-same']], ['abc', undefined])
  })

  test('a signed address’s token in the path is replaced by the sandbox’s id, however it was encoded', async () => {
    const signed = 'abcdefghijklmn01'
    for (const written of [signed, percent(signed), signed.replace('a', '%61')]) {
      await using sides = await startSides()
      openedBy(sides, 'signed-preview')
      await visit(sides, { host: '127.0.0.1', path: `/preview/${written}/3000/x` })
      assert.equal(sides.seen[0]?.headers['x-forwarded-prefix'], '/preview/box-id/3000', written)
    }
  })

  test('a signed address’s token never reaches the sandbox: it is removed, or replaced by the sandbox’s id', async () => {
    await using sides = await startSides()
    openedBy(sides, 'signed-preview')
    const signed = 'abcdefghijklmn01'
    const host = `3000-${signed}.p.test`
    const headers = { 'x-original-url': `http://${host}/`, referer: `http://3000-${percent(signed)}.p.test/x` }
    await visit(sides, { host, path: `/${signed}?t=${percent(signed)}&u=${signed}`, headers })
    const [call] = sides.seen
    assert.doesNotMatch(JSON.stringify(call), new RegExp(`${signed}|${percent(signed)}`))
    assert.deepEqual([call?.url, call?.headers.host], ['/box-id?u=box-id', '3000-box-id.p.test'])
  })
})
