import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { Api } from '#client/src/api.ts'
import { findSandboxes } from '#client/src/sandboxes/list.ts'
import { findAccess } from '#client/src/session/access.ts'
import { waitForLock } from '#client/src/session/lock.ts'
import { login, logout } from '#client/src/session/login.ts'
import { readSession, sessionFile, writeSession } from '#client/src/session/session.ts'
import { setPassword } from '#src/control/issuer/passwords.ts'
import { formOf, openBrowser } from '#test/control/browser.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations, userId } from '#test/control/people.ts'
import { insertMany } from '#test/control/population.ts'
import { testSettings } from '#test/control/test-settings.ts'

/** Returns a free port. The simulated identity provider must know its own address before it listens. */
const findFreePort = async (): Promise<number> => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

let app: TestControl
let url: string
let directory: string
let file: string

suite('alcove login', () => {
  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'alcove-login-'))
    file = sessionFile(directory)
    const port = await findFreePort()
    url = `http://127.0.0.1:${port}`
    app = await startControl({ settings: { identity: testSettings.identity, publicUrl: url } })
    await app.app.server.listen({ host: '127.0.0.1', port })
    await setPassword(app.database.sql, userId('owner'), 'a long enough password', app.clock.now())
  })
  after(async () => {
    await app?.[Symbol.asyncDispose]()
    rmSync(directory, { recursive: true, force: true })
  })

  /** Enters the code that the command has printed, as the user would do in a browser on another machine. */
  const enterCode = async (said: string) => {
    const [, address = ''] = /Open (\S+) in a browser/.exec(said) ?? []
    const [, code = ''] = /^ {4}(\S+)$/m.exec(said) ?? []
    const browser = openBrowser(url)
    const asked = await browser.get(address)
    const confirm = await browser.post(new URL(formOf(asked).action, url).href, {
      ...formOf(asked).fields,
      user_code: code,
    })
    const form = await browser.follow(await browser.post(formOf(confirm).action, formOf(confirm).fields))
    const fields = { email: 'owner@example.com', password: 'a long enough password' }
    const done = await browser.follow(await browser.post(new URL(formOf(form).action, url).href, fields))
    assert.match(done.html, /device is signed in/)
  }

  test('after a code was entered in a browser, `alcove login` has a token, and renews the expired token', async () => {
    let entered: Promise<void> | undefined
    await login({
      url,
      file,
      say: (line) => {
        if (line.startsWith('Open')) entered = enterCode(line)
      },
    })
    await entered
    assert.equal(statSync(file).mode & 0o777, 0o600)
    await insertMany(app.database.sql, { organizationId: organizations.ours, count: 3 }, app.clock.now())
    const list = async (organization: string = organizations.ours) => {
      const access = findAccess({ XDG_CONFIG_HOME: directory })
      assert.ok(access)
      const names = await findSandboxes(new Api(access, { organization }))
      return names.map(({ name }) => name).join('\n')
    }
    assert.match(await list(), /^notebook-/)
    const before = readSession(file)!
    writeSession(file, { ...before, accessToken: 'ended', endsAt: 0 })
    assert.match(await list(), /^notebook-/)
    // In each round, all commands find an expired token, and only one renews the session. The second round needs the refresh token
    // that the first round stored.
    for (const _ of ['once', 'again']) {
      writeSession(file, { ...readSession(file)!, endsAt: 0 })
      for (const names of await Promise.all([list(), list(), list()])) assert.match(names, /^notebook-/)
    }
    const renewed = readSession(file)!
    assert.notEqual(renewed.refreshToken, before.refreshToken)
    await assert.rejects(list(organizations.theirs), /has no access to/)

    // Locks the session, like a command that is renewing the session. Logout must wait: otherwise that command would write the
    // session file again.
    const renewing = await waitForLock(`${file}.busy`, 1000)
    const signedOut = logout({ file, say: () => {} })
    assert.ok(existsSync(file))
    renewing[Symbol.dispose]()
    await signedOut
    assert.ok(!existsSync(file))
    assert.equal(findAccess({ XDG_CONFIG_HOME: directory }), undefined)
    // The issuer has revoked the token of this session, so a command cannot renew it.
    writeSession(file, { ...renewed, endsAt: 0 })
    await assert.rejects(list(), /could not be renewed/)
  })

  test('a wrong address for `alcove login` and an unreadable session file are each reported in a sentence', async () => {
    await assert.rejects(login({ url: 'nonsense', file, say: () => {} }), /not the URL/)
    await assert.rejects(login({ url: 'http://127.0.0.1:1', file, say: () => {} }), /no Alcove server/)
    writeFileSync(file, '{')
    assert.throws(() => findAccess({ XDG_CONFIG_HOME: directory }), /cannot be read/)
    assert.equal(readFileSync(file, 'utf8'), '{')
  })
})
