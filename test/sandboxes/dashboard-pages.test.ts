// Opens every page of the dashboard in Chromium, in both themes, on a wide and a narrow screen. axe, a program that checks
// accessibility, must find no violations of WCAG AA. No page may be wider than the screen, and the browser must report no errors.
// Pictures of all pages are in `.alcove/pictures`, for people to look at.
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { after, before, suite, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { type Platform, platform } from './harness.ts'
import { makeAccount, openChromium, Visitor } from './visitor.ts'

type AxeResult = { violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[] }

const checkout = resolve(import.meta.dirname, '../..')
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const pictures = join(checkout, '.alcove/pictures')

const pages = [
  ...['sandboxes', 'snapshots', 'warm-pools', 'volumes', 'secrets', 'registries', 'keys', 'members', 'usage'],
  ...['webhooks', 'audit', 'identity-providers', 'organization', 'regions', 'account', 'api'],
]
/** How many times, at most, axe checks a page for accessibility. Only violations in the last check fail the test. */
const mostLooks = 6
const tabs = ['overview', 'terminal', 'files', 'logs', 'ports', 'forks', 'settings']

suite('the pages of the dashboard', () => {
  let alcove: Platform
  let browser: Browser
  let visitor: Visitor
  let sandboxId: string

  before(async () => {
    mkdirSync(pictures, { recursive: true })
    alcove = await platform()
    browser = await openChromium()
    // Switch the browser's content security policy off, so that the test can load axe, a program that checks accessibility. Other
    // tests check the policy.
    visitor = await Visitor.open(alcove, browser, { bypassCSP: true, reducedMotion: 'reduce' })
    await visitor.signIn(await makeAccount(alcove, 'reader'))
    const { body } = await visitor.api('POST', '/sandbox', { name: 'pictured', labels: { team: 'blue' } })
    sandboxId = String(body['id'])
  })
  after(async () => {
    await visitor.api('DELETE', `/sandbox/${sandboxId}`)
    await visitor[Symbol.asyncDispose]()
    await browser.close()
  })

  /** Returns the violations that axe finds on the open page, with one line for each element. */
  const listBarriers = async (): Promise<string[]> => {
    if (!(await visitor.page.evaluate(() => 'axe' in globalThis))) await visitor.page.evaluate(axe)
    const { violations } = (await visitor.page.evaluate(
      "axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] })",
    )) as AxeResult
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
    )
  }

  /**
   * Returns the page's lasting accessibility violations. Checks several times, because the terminal and Swagger UI change to a new
   * theme's colours late.
   */
  const listLastingBarriers = async (): Promise<string[]> => {
    for (let look = 1; ; look += 1) {
      const found = await listBarriers()
      if (found.length === 0 || look === mostLooks) return found
      await visitor.page.waitForTimeout(500)
    }
  }

  const isTooWide = () =>
    visitor.page.evaluate<boolean>('document.documentElement.scrollWidth > document.documentElement.clientWidth')

  const look = async (name: string, path: string) => {
    const { page } = visitor
    const found: string[] = []
    await page.setViewportSize({ width: 1280, height: 860 })
    await page.emulateMedia({ colorScheme: 'light' })
    await visitor.go(path)
    await page.getByText('Loading…').first().waitFor({ state: 'detached' })
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      found.push(...(await listLastingBarriers()).map((line) => `${colorScheme}: ${line}`))
      await page.screenshot({ path: join(pictures, `${name}-${colorScheme}.png`) })
    }
    await page.setViewportSize({ width: 375, height: 760 })
    await page.screenshot({ path: join(pictures, `${name}-narrow.png`) })
    if (await isTooWide()) found.push('wider than 375 px')
    assert.deepEqual(found, [])
  }

  for (const name of pages)
    test(`the page ${name} has no accessibility errors in either theme, and is not wider than 375 px`, () =>
      look(name, `/${name}`))
  for (const tab of tabs)
    test(`a sandbox’s tab ${tab} has no accessibility errors in either theme, and is not wider than 375 px`, () =>
      look(`sandbox-${tab}`, `/sandboxes/${sandboxId}/${tab}`))

  test('no page of the dashboard caused an error in the browser', () => assert.deepEqual(visitor.complaints, []))
})
