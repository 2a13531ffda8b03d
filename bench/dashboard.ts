// Measures how long the dashboard, in Chromium, takes to show its list of sandboxes. Also prints how long the API takes for the
// list.
//   node bench/dashboard.ts "$(./alcove user link)"
import { chromium } from 'playwright-core'

const rounds = 10
const [link] = process.argv.slice(2)
if (link === undefined) throw new Error('name a sign-in link, as "alcove user link" prints it')
const { origin } = new URL(link)

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] })
const page = await browser.newPage()
let authorization = ''
page.on('request', (request) => {
  authorization = request.headers()['authorization'] ?? authorization
})
await page.goto(link)
await page.getByRole('heading', { name: 'Sandboxes', level: 1 }).waitFor()

/** Returns the ms until the first row of the list is shown: from the page's load event, and from the start of the navigation. */
const visit = async (): Promise<{ afterLoad: number; fromClick: number }> => {
  // The page itself records when the first row appears, so delays of this process do not count.
  await page.addInitScript(`
    new MutationObserver((_, observer) => {
      if (document.querySelector('.sandbox-row[aria-rowindex]') === null) return
      observer.disconnect()
      globalThis.shownAt = performance.now()
    }).observe(document, { childList: true, subtree: true })
  `)
  await page.goto(`${origin}/dashboard/sandboxes`)
  await page.locator('.sandbox-row[aria-rowindex]').first().waitFor()
  return page.evaluate(`(() => {
    const [{ loadEventEnd }] = performance.getEntriesByType('navigation')
    return { afterLoad: globalThis.shownAt - loadEventEnd, fromClick: globalThis.shownAt }
  })()`)
}

const listMilliseconds = async (): Promise<number> => {
  const began = performance.now()
  await (await fetch(`${origin}/api/sandbox?limit=200`, { headers: { authorization } })).text()
  return performance.now() - began
}

const samples = []
for (let round = 0; round < rounds; round += 1) samples.push({ ...(await visit()), list: await listMilliseconds() })
await browser.close()

const median = (values: number[]): string =>
  (values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0).toFixed(0)
console.log('median ms  after load  from click  the list alone')
console.log(
  [
    '          ',
    ...[samples.map(({ afterLoad }) => afterLoad), samples.map(({ fromClick }) => fromClick)].map(median),
    median(samples.map(({ list }) => list)),
  ].join('  '),
)
