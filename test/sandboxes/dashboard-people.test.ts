// Tests in Chromium, with a real server, how users of the dashboard sign in, stay signed in, invite each other and make
// keys.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { type Platform, platform } from './harness.ts'
import { type Account, makeAccount, openChromium, Visitor } from './visitor.ts'

suite('accounts, sessions and members in the dashboard', () => {
  let alcove: Platform
  let browser: Browser
  let ann: Account
  let visitor: Visitor

  before(async () => {
    alcove = await platform()
    browser = await openChromium()
    ann = await makeAccount(alcove, 'ann')
    visitor = await Visitor.open(alcove, browser)
  })
  after(async () => {
    await visitor[Symbol.asyncDispose]()
    await browser.close()
  })

  test('a one-time link signs in once, without a password; the browser’s address and history lose the link', async () => {
    const { body } = await alcove.api('POST', '/admin/users/link', { email: ann.email })
    const { page } = visitor
    await page.goto(String(body['url']))
    await page.getByRole('heading', { name: 'Sandboxes', level: 1 }).waitFor()
    assert.equal(new URL(page.url()).hash, '')
    await page.getByText(ann.email).first().waitFor()
    await using second = await Visitor.open(alcove, browser)
    await second.page.goto(String(body['url']))
    await second.page.getByLabel('Password').waitFor()
    await second.page.getByText(/link/i).first().waitFor()
  })

  test('without JavaScript the dashboard says that it needs JavaScript', async () => {
    await using reader = await Visitor.open(alcove, browser, { javaScriptEnabled: false })
    await reader.page.goto(`${alcove.url}/dashboard/`)
    await reader.page.locator('noscript p').waitFor()
    assert.match((await reader.page.locator('noscript').textContent()) ?? '', /This page needs JavaScript/)
  })

  test('a session that expires on an open page is renewed in a second window, without losing typed text', async () => {
    const { page } = visitor
    await visitor.go('/sandboxes')
    await page.getByRole('button', { name: 'Create sandbox', exact: true }).click()
    await page.getByRole('dialog').getByLabel('Name').fill('typed before')
    const refused = { status: 401, json: { statusCode: 401, message: 'Invalid credentials', code: 'UNAUTHORIZED' } }
    await page.route(/\/api\/(?!config)/, (route) => route.fulfill(refused))
    await page.route(/\/oidc\/token/, (route) => route.fulfill({ status: 400, json: { error: 'invalid_grant' } }))
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByText('Your session has ended').waitFor()
    await page.unrouteAll()
    const popup = page.waitForEvent('popup')
    await page.getByRole('button', { name: 'Sign in again' }).click()
    // The user is still signed in at the issuer. So the second window shows no sign-in form and closes by itself.
    const opened = await popup
    if (!opened.isClosed()) await opened.waitForEvent('close')
    await page.getByText('Your session has ended').waitFor({ state: 'detached' })
    assert.equal(await page.getByRole('dialog').getByLabel('Name').inputValue(), 'typed before')
    await page.keyboard.press('Escape')
  })

  test('the dashboard shows the message and the request id of an error of the server', async () => {
    const { page } = visitor
    await visitor.go('/sandboxes')
    await page.getByRole('button', { name: 'Create sandbox', exact: true }).click()
    await page.getByRole('dialog').getByLabel('Name').fill('a/b')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    const alert = page.getByRole('alert')
    await alert.getByText(/name/i).first().waitFor()
    assert.match((await alert.textContent()) ?? '', /Request [\w-]+/)
    await page.keyboard.press('Escape')
  })

  test('the dashboard’s page of API keys shows a new key only once, and the key works', async () => {
    const { page } = visitor
    await visitor.go('/keys')
    await page.getByRole('button', { name: 'Create a key' }).first().click()
    await page.getByRole('dialog').getByLabel('Name').fill('laptop')
    await page.getByRole('dialog').getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByText('It is not shown again').waitFor()
    const shown = (await page.getByRole('dialog').textContent()) ?? ''
    const [key] = /dtn_[0-9a-f]{64}/.exec(shown) ?? []
    assert.ok(key, shown)
    const reply = await fetch(`${alcove.url}/api/api-keys/current`, { headers: { authorization: `Bearer ${key}` } })
    assert.equal(((await reply.json()) as { name: string }).name, 'laptop')
    await page.reload()
    await page.getByText('laptop').first().waitFor()
    assert.doesNotMatch((await page.locator('body').textContent()) ?? '', new RegExp(key))
  })

  test('an owner invites a user, who accepts in another browser and then sees the organization', async () => {
    const { page } = visitor
    const ben = await makeAccount(alcove, 'ben')
    await using guest = await Visitor.open(alcove, browser)
    await guest.signIn(ben)

    await page.getByRole('button', { name: /^Organization/ }).click()
    await page.getByRole('menuitem', { name: 'New organization…' }).click()
    await page.getByRole('dialog').getByLabel('Name').fill('Team of Ann')
    await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click()
    await page.getByRole('button', { name: 'Organization Team of Ann' }).waitFor()
    await visitor.go('/members')
    await page.getByRole('button', { name: 'Invite somebody' }).click()
    await page.getByRole('dialog').getByLabel('E-mail address').fill(ben.email)
    await page.getByRole('dialog').getByRole('button', { name: 'Invite' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })

    await guest.go('/members')
    const invitation = guest.page.getByRole('region', { name: 'Invitation to you' })
    await invitation.getByText('Team of Ann').waitFor()
    await invitation.getByRole('button', { name: 'Accept' }).click()
    await guest.page.getByRole('button', { name: 'Open the organization' }).click()
    await guest.page.getByText(ann.email).first().waitFor()
    await page.reload()
    await page.getByText(ben.email).first().waitFor()
    assert.deepEqual(guest.complaints, [])
  })

  test('choosing an organization in one tab does not change the organization of another tab', async () => {
    const other = await visitor.context.newPage()
    visitor.watch(other)
    await other.goto(`${alcove.url}/dashboard/members`)
    await other.getByRole('button', { name: 'Organization Team of Ann' }).click()
    await other.getByRole('menuitem', { name: 'Personal' }).click()
    await other.getByRole('button', { name: 'Organization Personal' }).waitFor()
    await visitor.page.getByRole('link', { name: 'API keys' }).click()
    await visitor.page.getByRole('heading', { name: 'API keys' }).waitFor()
    await visitor.page.getByRole('button', { name: 'Organization Team of Ann' }).waitFor()
    await other.close()
  })

  test('after a user has signed out, the dashboard asks for the password', async () => {
    const { page } = visitor
    await page.getByRole('button', { name: /^Account/ }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Password').waitFor()
  })

  test('the tests of this file caused no errors or violations of the content security policy in the browser', () => {
    assert.deepEqual(visitor.complaints, [])
  })
})
