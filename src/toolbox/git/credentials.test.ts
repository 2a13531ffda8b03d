import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { originOf, splitUrl } from './credentials.ts'
import { GitRoom, refusal } from './testing/git-room.ts'
import { account, GitServer } from './testing/git-server.ts'

const { username, password } = account

/** The arguments of every process of this machine, as bytes. */
const commandLines = () =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
      } catch {
        return ''
      }
    })

const forms = [password, encodeURIComponent(password), Buffer.from(`${username}:${password}`).toString('base64')]

suite('credentials of one git call', () => {
  test('credentials of clone, pull and push calls are in no file, argument or URL afterwards', async () => {
    await using room = await GitRoom.start()
    // This sandbox is configured to store every password that git uses.
    writeFileSync(join(room.home, '.gitconfig'), '[credential]\n\thelper = store\n')
    const url = `${room.http.url}/upstream.git`
    const path = join(room.home, 'work')
    const seen: string[] = []
    room.http.beforeServing = () => {
      seen.push(...commandLines())
    }

    await room.done('/clone', { url, path, username, password })
    room.advance({ readme: 'two\n' })
    await room.done('/pull', { path, username, password })
    assert.equal(readFileSync(join(path, 'readme'), 'utf8'), 'two\n')
    writeFileSync(join(path, 'mine'), '1')
    await room.done('/add', { path, files: ['.'] })
    const { hash } = (await room.done('/commit', { path, message: 'mine', author: 'A', email: 'a@b' })).body
    await room.done('/push', { path, username, password })
    assert.equal(room.git(room.upstream, 'rev-parse', 'main').trim(), hash)

    for (const verb of ['clone', 'pull', 'push'])
      assert.ok(
        seen.some((line) => line.includes(`\0${verb}\0`)),
        verb,
      )
    assert.ok(room.http.admitted >= 6)
    for (const form of forms) {
      assert.deepEqual(room.filesWith(form), [])
      assert.deepEqual(
        seen.filter((line) => line.includes(form)),
        [],
      )
    }
    assert.deepEqual((await room.get('/remotes', { path })).body, { remotes: [{ name: 'origin', url }] })
    // The credentials were not stored: the next call without credentials is refused.
    assert.deepEqual(refusal(await room.post('/pull', { path })), [401, 'GIT_AUTH_FAILED'])
  })

  test('credentials in the URL of a clone are in no file or argument afterwards', async () => {
    await using room = await GitRoom.start()
    const path = join(room.home, 'work')
    const url = `${room.http.url}/upstream.git`
    const told = url.replace('//', `//${username}:${encodeURIComponent(password)}@`)
    const seen: string[] = []
    room.http.beforeServing = () => {
      seen.push(...commandLines())
    }
    await room.done('/clone', { url: told, path })
    assert.deepEqual((await room.get('/remotes', { path })).body.remotes, [{ name: 'origin', url }])
    assert.ok(seen.some((line) => line.includes('\0clone\0')))
    for (const form of forms) {
      assert.deepEqual(room.filesWith(form), [])
      assert.ok(!seen.some((line) => line.includes(form)))
    }
  })

  test('git calls answer 401 for wrong or missing credentials, and git never asks for them at a terminal', async () => {
    await using room = await GitRoom.start()
    const url = `${room.http.url}/upstream.git`
    const path = join(room.home, 'work')
    const wrong = await room.post('/clone', { url, path, username, password: 'wrong' })
    assert.deepEqual(refusal(wrong), [401, 'GIT_AUTH_FAILED'])
    assert.ok(!JSON.stringify(wrong.body).includes('wrong"'))
    assert.deepEqual(refusal(await room.post('/clone', { url, path })), [401, 'GIT_AUTH_FAILED'])
    const forbidden = await room.post('/clone', { url: `${room.http.url}/forbidden/x`, path, username, password })
    assert.deepEqual(refusal(forbidden), [401, 'GIT_AUTH_FAILED'])
    const missing = await room.post('/clone', { url: `${room.http.url}/missing/x`, path, username, password })
    assert.deepEqual(refusal(missing), [404, 'GIT_REPO_NOT_FOUND'])
    assert.equal(room.http.admitted, 0)
  })

  test('credentials of a git call are not sent to another host that git contacts during the call', async () => {
    await using room = await GitRoom.start()
    await using other = await GitServer.start(join(room.directory, 'served'))
    const path = join(room.home, 'work')
    await room.done('/clone', { url: `${room.http.url}/upstream.git`, path, username, password })
    const asks = (url: string) => `#!/bin/sh\ngit ls-remote ${url}/upstream.git >${room.home}/told-by-hook\n`
    const hook = join(path, '.git/hooks/post-merge')
    writeFileSync(hook, asks(room.http.url), { mode: 0o755 })
    room.advance({ readme: 'two\n' })
    await room.done('/pull', { path, username, password })
    assert.match(readFileSync(join(room.home, 'told-by-hook'), 'utf8'), /refs\/heads\/main/)

    writeFileSync(hook, asks(other.url))
    room.advance({ readme: 'three\n' })
    await room.done('/pull', { path, username, password })
    assert.equal(readFileSync(join(room.home, 'told-by-hook'), 'utf8'), '')
    assert.deepEqual(other.authorizations, [])
  })

  test('a git call’s credentials may be only a password, or a token in place of the user name', async () => {
    await using room = await GitRoom.start()
    const url = `${room.http.url}/upstream.git`
    await room.post('/clone', { url, path: join(room.home, 'a'), password: 'token' })
    await room.post('/clone', { url, path: join(room.home, 'b'), username: 'token' })
    const sent = room.http.authorizations.map((text) => Buffer.from(text.slice(6), 'base64').toString())
    assert.deepEqual(sent, ['git:token', 'token:'])
  })

  test('git calls answer 400 for a line break in a credential, because git would read two fields', async () => {
    await using room = await GitRoom.start()
    const url = `${room.http.url}/upstream.git`
    const path = join(room.home, 'work')
    assert.equal((await room.post('/clone', { url, path, username, password: 'a\nhost=b' })).status, 400)
    assert.equal((await room.post('/clone', { url: url.replace('//', '//a%0Ab@'), path })).status, 400)
    assert.equal((await room.post('/clone', { url: 'ssh://a:b@127.0.0.1/x', path })).status, 400)
  })
})

suite('POST /git/credentials', () => {
  test('POST /git/credentials stores credentials for all later calls, in a file that only the user can read', async () => {
    await using room = await GitRoom.start()
    const host = new URL(room.http.url).host
    const url = `${room.http.url}/upstream.git`
    await room.done('/credentials', { username, password, host, protocol: 'http' })
    await room.done('/clone', { url, path: join(room.home, 'work') })
    assert.equal(statSync(join(room.home, '.git-credentials')).mode & 0o777, 0o600)
    // Credentials of a call take precedence over the stored ones, and do not replace them.
    const other = await room.post('/clone', { url, path: join(room.home, 'b'), username: 'x', password: 'y' })
    assert.deepEqual(refusal(other), [401, 'GIT_AUTH_FAILED'])
    await room.done('/clone', { url, path: join(room.home, 'c') })
  })

  test('POST /git/credentials answers 400 for an invalid host', async () => {
    await using room = await GitRoom.start()
    for (const host of ['a/b', 'a@b', 'a\nb', ' ']) {
      assert.equal((await room.post('/credentials', { username, password, host })).status, 400)
    }
  })
})

suite('credentials in git URLs', () => {
  test('`splitUrl` separates the credentials from an HTTP URL, and leaves other URLs unchanged', () => {
    assert.deepEqual(splitUrl('https://a%20b:c%2Fd@host:8443/x y?z'), {
      url: 'https://host:8443/x%20y?z',
      credentials: { username: 'a b', password: 'c/d' },
    })
    for (const url of ['https://host/x y', 'git@host:a/b', 'ssh://git@host/x', '/a/b', 'file:///a']) {
      assert.deepEqual(splitUrl(url), { url })
    }
  })

  test('the origin of a git server is the scheme, host and port of its HTTP URL', () => {
    assert.equal(originOf('https://Host:443/a/b'), 'https://host')
    assert.equal(originOf('http://[::1]:80/a'), 'http://[::1]')
    assert.equal(originOf('ssh://host/a'), undefined)
    assert.equal(originOf('host:a'), undefined)
  })
})
