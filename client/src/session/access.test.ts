import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { exitCodes, Failure } from '../failure.ts'
import { findAccess, ownSessionFile } from './access.ts'
import { writeSession } from './session.ts'

suite('the server and the credential of a command', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'alcove-access-'))
  after(() => rmSync(scratch, { recursive: true, force: true }))
  const home = { XDG_CONFIG_HOME: scratch }
  const found = async (env: NodeJS.ProcessEnv) => {
    const access = findAccess({ ...home, ...env })
    return access && [access.apiUrl, await access.token()]
  }
  const session = (apiUrl: string) => {
    const endsAt = Date.now() + 3_600_000
    writeSession(ownSessionFile(home), { apiUrl, issuer: '', clientId: '', accessToken: 'session', endsAt })
  }

  test('ALCOVE_API_KEY is sent to ALCOVE_API_URL or, if this is not set, to the server on this machine', async () => {
    assert.equal(await found({}), undefined)
    assert.deepEqual(await found({ ALCOVE_API_KEY: 'k' }), ['http://127.0.0.1:4600/api', 'k'])
    for (const url of ['https://a.example', 'https://a.example/', 'https://a.example/api', 'https://a.example/api/'])
      assert.deepEqual(await found({ ALCOVE_API_KEY: 'k', ALCOVE_API_URL: url }), ['https://a.example/api', 'k'])
  })

  test('DAYTONA_API_KEY is used only with DAYTONA_API_URL, so that the key is sent to no other server', async () => {
    const sdk = { DAYTONA_API_URL: 'https://b.example/api', DAYTONA_API_KEY: 'd' }
    assert.deepEqual(await found(sdk), ['https://b.example/api', 'd'])
    assert.equal(await found({ DAYTONA_API_KEY: 'd' }), undefined)
    assert.equal(await found({ ...sdk, ALCOVE_API_URL: 'https://a.example' }), undefined)
    assert.deepEqual(await found({ ...sdk, ALCOVE_API_KEY: 'k' }), ['http://127.0.0.1:4600/api', 'k'])
  })

  test('without an API key, the session is used, but only for the server at which the user signed in', async () => {
    session('https://a.example/api')
    assert.deepEqual(await found({}), ['https://a.example/api', 'session'])
    assert.deepEqual(await found({ ALCOVE_API_URL: 'https://a.example' }), ['https://a.example/api', 'session'])
    assert.equal(await found({ ALCOVE_API_URL: 'https://c.example' }), undefined)
    assert.deepEqual(await found({ ALCOVE_API_KEY: 'k' }), ['http://127.0.0.1:4600/api', 'k'])
  })

  test('a command gets no token if the user has signed in to another server in the meantime', async () => {
    session('https://a.example/api')
    const access = findAccess(home)
    session('https://c.example/api')
    await assert.rejects(async () => access?.token(), /another server/)
  })

  test('an invalid key or URL is refused, and the error does not contain the key or the password', () => {
    const isSilent = (error: unknown) =>
      error instanceof Failure && error.exitCode === exitCodes.usage && !error.message.includes('hush')
    const url = 'https://a.example'
    for (const key of ['a\nhush', 'a hush', 'hush\u0007', 'hush\u20ac', ' '])
      assert.throws(() => findAccess({ ...home, ALCOVE_API_KEY: key, ALCOVE_API_URL: url }), isSilent, key)
    for (const address of ['https://me:hush@a.example', 'https://hush@a.example', `${url}/?key=hush`, `${url}/#hush`])
      assert.throws(() => findAccess({ ...home, ALCOVE_API_KEY: 'k', ALCOVE_API_URL: address }), isSilent, address)
  })

  test('white space around an API key, such as a line end, is removed', async () => {
    assert.deepEqual(await found({ ALCOVE_API_KEY: ' k\r\n' }), ['http://127.0.0.1:4600/api', 'k'])
  })

  test('if `alcove` cannot reach the server, its error does not ask the user to sign in again', async () => {
    const expired = { apiUrl: 'http://127.0.0.1:9/api', issuer: 'http://127.0.0.1:9', clientId: 'c', accessToken: 'a' }
    writeSession(ownSessionFile(home), { ...expired, refreshToken: 'r', endsAt: 0 })
    const isAway = (error: unknown) =>
      error instanceof Failure && error.exitCode === exitCodes.unreachable && /does not answer/.test(error.message)
    await assert.rejects(async () => await findAccess(home)?.token(), isAway)
  })

  test('a damaged session file is reported in one sentence', () => {
    for (const content of ['', 'null', '{}', '{"apiUrl":5}']) {
      writeFileSync(ownSessionFile(home), content)
      const isFailure = (error: unknown) => error instanceof Failure && error.exitCode === exitCodes.notAllowed
      assert.throws(() => findAccess(home), isFailure, content)
    }
    rmSync(ownSessionFile(home))
  })

  test('`alcove` reports a server address that is not a URL as a wrong command line', () => {
    const isUsage = (error: unknown) => error instanceof Failure && error.exitCode === exitCodes.usage
    assert.throws(() => findAccess({ ...home, ALCOVE_API_KEY: 'k', ALCOVE_API_URL: 'file:///etc' }), isUsage)
  })
})
