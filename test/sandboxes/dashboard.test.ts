// Tests in a real browser, with a real server and real sandboxes, what users do in the dashboard on their first day.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { type Platform, platform } from './harness.ts'
import { type Account, makeAccount, openChromium, Visitor } from './visitor.ts'

suite('the dashboard in Chromium', () => {
  let alcove: Platform
  let browser: Browser
  let account: Account
  let visitor: Visitor

  before(async () => {
    alcove = await platform()
    browser = await openChromium()
    account = await makeAccount(alcove, 'visitor')
    visitor = await Visitor.open(alcove, browser)
  })
  after(async () => {
    const { items } = (await visitor.api('GET', '/sandbox')).body as { items: { id: string }[] }
    for (const { id } of items) await visitor.api('DELETE', `/sandbox/${id}`)
    await visitor[Symbol.asyncDispose]()
    await browser.close()
  })

  test('after a user has signed in with a password, an empty organization shows the first steps', async () => {
    await visitor.signIn(account)
    await visitor.page.getByRole('heading', { name: 'Your first sandbox' }).waitFor()
    assert.equal(new URL(visitor.page.url()).pathname, '/dashboard/sandboxes')
  })

  test('after a reload the user is still signed in, and no storage of the browser contains a token', async () => {
    await visitor.page.reload()
    await visitor.page.getByRole('heading', { name: 'Your first sandbox' }).waitFor()
    const stored = await visitor.page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]))
    assert.doesNotMatch(stored, /eyJ|refresh|token/i)
  })

  test('one click on the dashboard makes the first sandbox and opens its terminal, which can run commands', async () => {
    const { page } = visitor
    await page.getByRole('button', { name: 'Create a sandbox and open its terminal' }).click()
    const screen = page.locator('.xterm-rows')
    await screen.getByText('$').first().waitFor()
    await page.locator('.xterm-helper-textarea').pressSequentially('echo the answer is $((6*7))\n')
    await screen.getByText('the answer is 42').waitFor()
    const { items } = (await visitor.api('GET', '/sandbox')).body as { items: { id: string }[] }
    await visitor.api('DELETE', `/sandbox/${items[0]?.id}`)
    await visitor.go('/sandboxes')
  })

  test('the create dialog makes a sandbox with the chosen options, and shows the API call as a curl command', async () => {
    const { page } = visitor
    await page.getByRole('button', { name: 'Create sandbox', exact: true }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('first')
    await dialog.getByText('Size, region and user').click()
    await dialog.getByLabel('Labels').fill('team=blue')
    await dialog.getByText('The same request as code').click()
    assert.match((await dialog.locator('pre').textContent()) ?? '', /"name":"first","labels":\{"team":"blue"\}/)
    await dialog.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('heading', { name: 'first', level: 1 }).waitFor()
    const { body } = await visitor.api('GET', '/sandbox/first')
    assert.deepEqual([body['state'], body['labels']], ['started', { team: 'blue' }])
  })

  test('the list of sandboxes shows changes by other users without a reload', async () => {
    await visitor.go('/sandboxes')
    const { page } = visitor
    const row = page.getByRole('row', { name: /first/ })
    await row.getByText('started').waitFor()
    await visitor.api('POST', '/sandbox/first/stop')
    await row.getByText('stopped').waitFor()
    await visitor.api('POST', '/sandbox', { name: 'second' })
    await page
      .getByRole('row', { name: /second/ })
      .getByText('started')
      .waitFor()
  })

  test('the page’s address contains the filters of the list; opening that address shows the filtered list', async () => {
    const { page } = visitor
    await visitor.go('/sandboxes')
    await page.getByRole('button', { name: 'stopped', exact: true }).click()
    await page.getByRole('row', { name: /second/ }).waitFor({ state: 'detached' })
    await page.getByRole('row', { name: /first/ }).waitFor()
    const address = page.url()
    assert.match(decodeURIComponent(address), /states=\["stopped"\]/)
    await page.goto(address)
    await page.getByRole('row', { name: /first/ }).waitFor()
    assert.equal(await page.getByRole('row', { name: /second/ }).count(), 0)
  })

  test('with the dashboard’s command palette, a user opens a sandbox or a page with the keyboard alone', async () => {
    const { page } = visitor
    await visitor.go('/sandboxes')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('seco')
    await page.getByRole('option', { name: /second/ }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'second', level: 1 }).waitFor()
    await page.keyboard.press('Control+k')
    await page.keyboard.type('audit')
    await page.getByRole('option', { name: /Audit log/, selected: true }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Audit log' }).waitFor()
  })

  test('the dashboard deletes all selected sandboxes together, after a question that says what is lost', async () => {
    const { page } = visitor
    await visitor.go('/sandboxes')
    await page.getByLabel('Select all that are loaded').check()
    await page.getByRole('button', { name: 'Delete 2' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('This cannot be undone').waitFor()
    await dialog.getByRole('button', { name: 'Delete 2' }).click()
    await page.getByRole('heading', { name: 'Your first sandbox' }).waitFor()
    const { items } = (await visitor.api('GET', '/sandbox')).body as { items: unknown[] }
    assert.deepEqual(items, [])
  })

  test('a list of 100,000 sandboxes scrolls to its end, but only the visible rows are in the page', async () => {
    const perCall = 10_000
    const rows = (from: number) =>
      Array.from({ length: perCall }, (_, n) => ({
        ...{ id: `00000000-0000-4000-8000-${String(from + n).padStart(12, '0')}`, name: `box-${from + n}`, labels: {} },
        ...{ state: 'stopped', target: 'local', createdAt: '2026-01-01T00:00:00Z' },
      }))
    const { page } = visitor
    await page.route(/\/api\/sandbox\?/, async (route) => {
      const from = Number(new URL(route.request().url()).searchParams.get('cursor') ?? 0)
      const next = from + perCall
      await route.fulfill({ json: { items: rows(from), nextCursor: next < 100_000 ? String(next) : null } })
    })
    await visitor.go('/sandboxes')
    await page.getByText('10000+ shown').waitFor()
    while ((await page.getByText('100000 shown').count()) === 0) {
      await page.evaluate('scrollTo(0, document.body.scrollHeight)')
      await page.evaluate('new Promise((resolve) => requestAnimationFrame(resolve))')
    }
    await page.evaluate('scrollTo(0, document.body.scrollHeight)')
    await page.getByText('box-99999', { exact: true }).waitFor()
    const drawn = await page.getByRole('row').count()
    assert.ok(drawn < 100, `${drawn} rows`)
    await page.unroute(/\/api\/sandbox\?/)
  })

  test('the tests of this file caused no errors or violations of the content security policy in the browser', () => {
    assert.deepEqual(visitor.complaints, [])
  })
})
