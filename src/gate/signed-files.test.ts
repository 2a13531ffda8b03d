import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startSides } from './testing/simulated.ts'

suite('signed file URLs at the gate', () => {
  const query = 'path=%2Fhome%2Fa%20b%26c&expires=0&signature=v1_x'

  test('control checks the signature of a signed file URL, and the toolbox gets only the signed path', async () => {
    await using sides = await startSides()
    for (const [method, path] of [
      ['GET', '/files/download'],
      ['POST', '/files/upload-v2'],
    ] as const) {
      const reply = await fetch(`${sides.url}/toolbox/box${path}?x=1&${query}`, { method })
      assert.equal(reply.status, 200)
      assert.deepEqual(sides.asked.at(-1)?.credentials, [
        { kind: 'file-signature', method, path: '/home/a b&c', expires: '0', signature: 'v1_x' },
      ])
      assert.equal(sides.seen.at(-1)?.url, `/toolbox/box-id${path}?path=%2Fhome%2Fa%20b%26c`)
    }
  })

  test('a signed file URL that is used for another call, or has repeated or missing fields, gets 401', async () => {
    await using sides = await startSides()
    for (const [method, path] of [
      ['POST', '/files/download'],
      ['GET', '/files/upload-v2'],
      ['GET', '/files'],
      ['GET', '/files/download/'],
      ['POST', '/process/execute'],
      ['DELETE', '/files/download'],
    ] as const) {
      assert.equal((await fetch(`${sides.url}/toolbox/box${path}?${query}`, { method })).status, 401, path)
    }
    for (const wrong of [`${query}&path=%2Fetc`, `${query}&%70ath=x`, 'path=x&expires=0', 'expires=0&signature=v1_x']) {
      assert.equal((await fetch(`${sides.url}/toolbox/box/files/download?${wrong}`)).status, 401, wrong)
    }
    assert.deepEqual([sides.asked.length, sides.seen.length], [0, 0])
  })

  test('an API key is tried before the signature of a signed file URL', async () => {
    await using sides = await startSides()
    const headers = { authorization: 'Bearer key' }
    await fetch(`${sides.url}/toolbox/box/files/download?${query}`, { headers })
    assert.deepEqual(
      sides.asked[0]?.credentials.map(({ kind }) => kind),
      ['bearer', 'file-signature'],
    )
  })
})
