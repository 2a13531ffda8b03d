import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startSides } from '../testing/simulated.ts'
import { openedBy, previewHost, visit } from '../testing/visiting.ts'

suite('previews of a server that accepts only localhost as its host name', () => {
  const origin = `http://${previewHost}`

  test('with hostInside set to localhost, a sandbox’s server gets localhost:PORT as a preview call’s Host', async () => {
    await using sides = await startSides()
    openedBy(sides, 'public', { hostInside: 'localhost' })
    await visit(sides, { headers: { origin, referer: `${origin}/a?b` } })
    const { headers } = sides.seen[0]!
    assert.deepEqual(
      [headers.host, headers.origin, headers.referer, headers['x-forwarded-host']],
      ['localhost:3000', 'http://localhost:3000', 'http://localhost:3000/a?b', previewHost],
    )
  })

  test('with hostInside set to localhost, Origin and Referer that name another host are not changed', async () => {
    await using sides = await startSides()
    openedBy(sides, 'public', { hostInside: 'localhost' })
    for (const other of ['http://8080-box-id.proxy.test:4601', 'https://evil.test', 'null']) {
      await visit(sides, { headers: { origin: other } })
      assert.equal(sides.seen.at(-1)?.headers.origin, other)
    }
  })

  test('with hostInside set to localhost, redirects of a sandbox’s server to localhost lead to the preview', async () => {
    await using sides = await startSides()
    openedBy(sides, 'public', { hostInside: 'localhost' })
    for (const [location, seen] of [
      ['http://localhost:3000/next?a', `//${previewHost}/next?a`],
      ['/next', '/next'],
      [`http://${previewHost}/x`, `http://${previewHost}/x`],
      ['http://localhost:3001/', 'http://localhost:3001/'],
    ]) {
      sides.inside.call = (_request, response) => void response.writeHead(302, { location }).end()
      assert.equal((await visit(sides)).headers.location, seen)
    }
  })

  test('without the access field `hostInside`, a sandbox’s server gets the preview’s host name as Host', async () => {
    await using sides = await startSides()
    openedBy(sides, 'public')
    await visit(sides, { headers: { origin } })
    assert.deepEqual([sides.seen[0]?.headers.host, sides.seen[0]?.headers.origin], [previewHost, origin])
  })
})
