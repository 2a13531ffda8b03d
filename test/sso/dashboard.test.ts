// Tests single sign-on in a real browser. Alcove and the organization's identity provider know a user by the same e-mail address.
// The user confirms the link once on the dashboard. After that, the user signs in only at the provider.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { ensureDashboard, findDashboardPlace } from '#src/up/dashboard/ensure.ts'
import { testSettings } from '#test/control/test-settings.ts'
import { needsRoot } from '#test/needs-root.ts'
import { freePorts } from '#test/sandboxes/free-ports.ts'
import { openChromium } from '#test/sandboxes/visitor.ts'
import { type SsoControl, startSso } from './organization.ts'
import { startProvider, type TestProvider } from './provider.ts'

suite('single sign-on at the dashboard', { skip: needsRoot }, () => {
  const cache = mkdtempSync(join(tmpdir(), 'alcove-sso-pages-'))
  let provider: TestProvider
  let sso: SsoControl
  let browser: Browser
  let publicUrl: string

  before(async () => {
    const port = await freePorts(1)
    publicUrl = `http://127.0.0.1:${port}`
    provider = await startProvider({ redirectUri: `${publicUrl}/api/auth/sso/callback` })
    await provider.setAccounts({ mary: { email: 'mary@example.com', email_verified: true, name: 'Mary' } })
    const place = findDashboardPlace(cache)
    assert.equal(await ensureDashboard(place, () => {}), undefined)
    const identity = { ...testSettings.identity, issuers: [] }
    sso = await startSso(provider, {}, { settings: { publicUrl, identity, dashboardDirectory: place.directory } })
    await sso.app.app.server.listen({ host: '127.0.0.1', port })
    browser = await openChromium()
  })
  after(async () => {
    await browser?.close()
    await sso?.[Symbol.asyncDispose]()
    await provider?.stop()
    rmSync(cache, { recursive: true, force: true })
  })

  test('a first sign-in by a provider waits until the owner of the Alcove account confirms the link', async () => {
    const admin = sso.app.as('admin')
    const email = 'mary@example.com'
    assert.equal((await admin.post('/admin/users', { email, name: 'Mary' })).status, 201)
    const { password } = (await admin.post('/admin/users/password', { email })).body as { password: string }
    const context = await browser.newContext()
    const page = await context.newPage()
    const throughProvider = async () => {
      await page.goto(sso.startUrl)
      if (new URL(page.url()).origin === publicUrl) return
      await page.locator('input[name=login]').fill('mary')
      await page.keyboard.press('Enter')
    }

    await throughProvider()
    await page.getByText('An account with this address already exists').waitFor()
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByLabel('E-mail').fill(email)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { level: 1 }).waitFor()

    await page.goto(`${publicUrl}/dashboard/account`)
    const link = page.getByRole('region', { name: 'Sign-in that waits for you' })
    await link.getByText(email).waitFor()
    await link.getByRole('button', { name: 'Confirm…' }).click()
    await page.getByRole('button', { name: 'Yes, it was me' }).click()
    await link.waitFor({ state: 'detached' })
    await context.clearCookies({ domain: '127.0.0.1' })

    await throughProvider()
    await page.getByRole('heading', { name: 'Sandboxes', level: 1 }).waitFor()
    assert.equal(new URL(page.url()).hash, '')
    await page.getByText(email).first().waitFor()
    await context.close()
  })
})
