import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { suite, test } from 'node:test'
import { startSides } from '../testing/simulated.ts'
import { browser, refused, visit } from '../testing/visiting.ts'

const scriptIn = (text: string) => /<script>([\s\S]*)<\/script>/.exec(text)?.[1]

suite('pages for refused preview calls', () => {
  test('the 502 page for a preview port without a listener reloads itself, and allows no other script', async () => {
    await using sides = await startSides()
    sides.dialRefusal = 'connect'
    for (const headers of [browser, { accept: 'text/html' }]) {
      const { status, text, headers: answered } = await visit(sides, { headers })
      assert.equal(status, 502)
      assert.match(text, /<h1>Nothing listens on port 3000 yet<\/h1>/)
      const hash = createHash('sha256').update(scriptIn(text)!).digest('base64')
      const policy = String(answered['content-security-policy'])
      assert.ok(policy.includes(`script-src 'sha256-${hash}'`) && policy.includes("default-src 'none'"), policy)
      assert.equal(answered['cache-control'], 'no-store')
    }
    const looks = await visit(sides, { method: 'HEAD', headers: { 'x-daytona-skip-last-activity-update': 'true' } })
    assert.equal(looks.status, 502)
    assert.equal(sides.asked.at(-1)?.countsAsActivity, false)
  })

  test('a preview’s 409 page shows the sandbox’s state, and reloads only if the sandbox is about to start', async () => {
    for (const [state, title, looksAgain] of [
      ['stopped', 'The sandbox is stopped', false],
      ['paused', 'The sandbox is paused', false],
      ['archived', 'The sandbox is archived', false],
      ['starting', 'The sandbox is starting', true],
      ['building_snapshot', 'The sandbox is building snapshot', true],
      ['<script>x', 'The sandbox is &lt;script&gt;x', false],
    ] as const) {
      await using sides = await startSides()
      sides.control.answer = () => sides.access({ isStarted: false, state })
      const { status, text } = await visit(sides, { headers: browser })
      assert.equal(status, 409)
      assert.ok(text.includes(`<h1>${title}</h1>`), text)
      assert.equal(scriptIn(text) !== undefined, looksAgain, state)
    }
  })

  test('a refused person gets a page, also after sending a form; refused programs and fetch calls get JSON', async () => {
    await using sides = await startSides()
    refused(sides)
    const typeOf = async (method: string, headers: Record<string, string>) =>
      String((await visit(sides, { method, headers })).headers['content-type']).split(';')[0]
    assert.equal(await typeOf('POST', browser), 'text/html')
    for (const headers of [
      {},
      { accept: '*/*' },
      { accept: 'application/json' },
      { ...browser, 'sec-fetch-mode': 'cors' },
    ]) {
      assert.equal(await typeOf('GET', headers as Record<string, string>), 'application/json')
    }
  })
})
