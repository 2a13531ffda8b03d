// Tests the dashboard's page of a real sandbox in Chromium: the sandbox's files and logs, and the names and output of a hostile
// sandbox.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { type Box, createBox } from './box.ts'
import { type Platform, platform } from './harness.ts'
import { makeAccount, openChromium, Visitor } from './visitor.ts'

suite('the page of a sandbox', () => {
  let alcove: Platform
  let browser: Browser
  let visitor: Visitor
  let box: Box

  const open = (tab: string) => visitor.go(`/sandboxes/${box.id}/${tab}`)

  before(async () => {
    alcove = await platform()
    browser = await openChromium()
    visitor = await Visitor.open(alcove, browser)
    await visitor.signIn(await makeAccount(alcove, 'worker'))
    box = await createBox({ ...alcove, key: visitor.key, api: visitor.api }, { name: 'work' })
  })
  after(async () => {
    await box[Symbol.asyncDispose]()
    await visitor[Symbol.asyncDispose]()
    await browser.close()
  })

  test('the file editor opens, changes and saves a file of the sandbox', async () => {
    await box.run("printf 'first line\\n' > notes.txt")
    const { page } = visitor
    await open('files')
    await page.getByRole('button', { name: 'notes.txt', exact: true }).click()
    await page.locator('.cm-content').getByText('first line').waitFor()
    await page.locator('.cm-content').click()
    await page.keyboard.press('Control+End')
    await page.keyboard.type('second line')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('button', { name: 'Save', disabled: true }).waitFor()
    assert.equal(await box.run('cat notes.txt'), 'first line\nsecond line')
  })

  test('the files tab uploads a local file, which then appears in the list', async () => {
    const { page } = visitor
    await open('files')
    const file = { name: 'photo.bin', mimeType: 'application/octet-stream', buffer: Buffer.alloc(300_000, 7) }
    await page.getByLabel('Files to upload').setInputFiles(file)
    await page.getByRole('button', { name: 'photo.bin', exact: true }).waitFor()
    assert.equal(await box.run('stat -c %s photo.bin'), '300000')
  })

  test('the logs tab of a sandbox shows new lines, but does not scroll to them after the user scrolled up', async () => {
    assert.ok((await box.toolbox('POST', '/process/session', { sessionId: 'worker' })).status < 300)
    const command =
      'for n in $(seq 300); do echo "line $n"; done; sleep 1; while [ ! -e stop ]; do sleep 0.2; done; echo finished'
    const begun = await box.toolbox('POST', '/process/session/worker/exec', { command, runAsync: true })
    assert.ok(begun.status < 300, JSON.stringify(begun.body))
    const { page } = visitor
    await open('logs')
    await page.getByRole('region', { name: 'Session worker' }).getByRole('button').first().click()
    const log = page.locator('.log-lines')
    await log.getByText('line 300').waitFor()
    await log.evaluate((element: { scrollTop: number }) => {
      element.scrollTop = 0
    })
    await log.getByText('line 1', { exact: true }).waitFor()
    await box.run('touch stop')
    await page.getByRole('button', { name: /end/i }).click()
    await log.getByText('finished').waitFor()
  })

  test('the dashboard shows names, output and links of a hostile sandbox as text, and runs no script of it', async () => {
    const { page } = visitor
    const evil = '<img src=x onerror=fetch("/stolen")>'
    await box.run(`touch '${evil.replaceAll('/', '_')}' $'two\\nlines' $'\\u202egnp.exe'`)
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    await open('files')
    await page.getByText('onerror').first().waitFor()
    await open('terminal')
    const screen = page.locator('.xterm-rows')
    await screen.getByText('$').first().waitFor()
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.evaluate("navigator.clipboard.writeText('before')")
    // The script prints escape sequences that try to set the clipboard and the title, and make a link that runs a script.
    await box.run(
      `printf "printf '\\\\033]52;c;c3RvbGVu\\\\007\\\\033]2;<b>title</b>\\\\007\\\\033]8;;javascript:fetch(1)\\\\007click\\\\033]8;;\\\\007 done\\\\n'\\n" > evil.sh`,
    )
    await page.locator('.xterm-helper-textarea').pressSequentially('sh evil.sh\n')
    await screen.getByText('click done').waitFor()
    const line = await screen.getByText('click done').boundingBox()
    await page.mouse.click((line?.x ?? 0) + 10, (line?.y ?? 0) + 5)
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), 'before')
    assert.doesNotMatch(await page.title(), /<b>/)
    assert.deepEqual(
      asked.filter((url) => url.includes('stolen')),
      [],
    )
    assert.equal(page.context().pages().length, 1)
  })

  test('the terminal tab of a stopped sandbox says that the sandbox is stopped, and offers to start it', async () => {
    const { page } = visitor
    await open('terminal')
    await page.locator('.xterm-rows').getByText('$').first().waitFor()
    await visitor.api('POST', `/sandbox/${box.id}/stop`)
    await page.getByRole('button', { name: 'Start' }).first().click()
    await page.locator('.xterm-rows').getByText('$').first().waitFor()
  })

  test('the overview tab shows the timeline of the sandbox', async () => {
    await open('overview')
    await visitor.page.getByText('Stopped').first().waitFor()
    await visitor.page.getByText('by you').first().waitFor()
  })

  test('the tests of this file caused no errors or violations of the content security policy in the browser', () => {
    assert.deepEqual(visitor.complaints, [])
  })
})
