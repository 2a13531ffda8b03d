import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, relative } from 'node:path'
import { suite, test } from 'node:test'
import { isRoot } from '#test/needs-root.ts'
import { until } from '../agent/testing/native-agent.ts'
import { GitRoom, refusal } from './testing/git-room.ts'
import { account, GitServer } from './testing/git-server.ts'

suite('POST /git/clone', () => {
  test('POST /git/clone answers 200, clones the default branch and sets its upstream', async () => {
    await using room = await GitRoom.start()
    const path = join(room.home, 'new/place')
    const reply = await room.post('/clone', { url: `file://${room.upstream}`, path })
    assert.deepEqual(reply, { status: 200, body: undefined })
    assert.equal(readFileSync(join(path, 'readme'), 'utf8'), 'one\n')
    assert.equal((await room.get('/status', { path })).body.upstream, 'origin/main')
  })

  test('POST /git/clone resolves a relative path from the home of the sandbox’s user', async () => {
    await using room = await GitRoom.start()
    const path = join(room.home, 'here')
    await room.done('/clone', { url: room.upstream, path: relative(homedir(), path) })
    assert.ok(existsSync(join(path, 'readme')))
    assert.equal((await room.get('/status', { path: relative(homedir(), path) })).body.currentBranch, 'main')
  })

  test('POST /git/clone answers 200 for a named branch with a limited depth', async () => {
    await using room = await GitRoom.start()
    room.advance({ readme: 'two\n' })
    room.advance({ readme: 'three\n' }, 'next')
    const path = join(room.home, 'next')
    await room.done('/clone', { url: `file://${room.upstream}`, path, branch: 'next', depth: 1 })
    const history = await room.get('/history', { path })
    assert.deepEqual(
      history.body.map(({ message }: { message: string }) => message),
      ['to next'],
    )
  })

  for (const depth of [0, 1]) {
    test(`a git clone of a commit detaches HEAD at that commit, with depth ${depth}`, async () => {
      await using room = await GitRoom.start()
      const wanted = room.advance({ readme: 'two\n' })
      room.advance({ readme: 'three\n' })
      const path = join(room.home, 'old')
      await room.done('/clone', { url: `file://${room.upstream}`, path, commit_id: wanted, depth })
      assert.equal(readFileSync(join(path, 'readme'), 'utf8'), 'two\n')
      const { currentBranch, detached } = (await room.get('/status', { path })).body
      assert.deepEqual([currentBranch, detached], ['HEAD', true])
    })
  }

  test('POST /git/clone treats null and empty texts as absent', async () => {
    await using room = await GitRoom.start()
    const nothing = { branch: '', commit_id: null, username: '', password: null, depth: null, insecure_skip_tls: null }
    await room.done('/clone', { url: room.upstream, path: join(room.home, 'work'), ...nothing })
  })

  test('POST /git/clone answers 404 for a missing repository, branch or commit, and leaves no files', async () => {
    await using room = await GitRoom.start()
    const path = join(room.home, 'work')
    const none = await room.post('/clone', { url: `file://${room.upstream}/no`, path })
    assert.deepEqual(refusal(none), [404, 'GIT_REPO_NOT_FOUND'])
    const file = join(room.home, 'file')
    writeFileSync(file, 'no repository')
    assert.deepEqual(refusal(await room.post('/clone', { url: file, path })), [404, 'GIT_REPO_NOT_FOUND'])
    const branch = await room.post('/clone', { url: room.upstream, path, branch: 'nope' })
    assert.deepEqual(refusal(branch), [404, 'GIT_BRANCH_NOT_FOUND'])
    assert.match(branch.body.message, /nope/)
    assert.ok(!existsSync(path))
    const commit = await room.post('/clone', { url: room.upstream, path, commit_id: 'f'.repeat(40) })
    assert.deepEqual(refusal(commit), [404, 'NOT_FOUND'])
  })

  test('POST /git/clone answers 409 if the target directory exists, and leaves it unchanged', async () => {
    await using room = await GitRoom.start()
    const path = join(room.home, 'taken')
    mkdirSync(path)
    writeFileSync(join(path, 'file'), 'mine')
    assert.deepEqual(refusal(await room.post('/clone', { url: room.upstream, path })), [409, 'CONFLICT'])
    assert.equal(readFileSync(join(path, 'file'), 'utf8'), 'mine')
  })

  test('POST /git/clone answers 502 if the git server cannot be reached', async () => {
    await using room = await GitRoom.start()
    const reply = await room.post('/clone', { url: 'http://127.0.0.1:1/x.git', path: join(room.home, 'work') })
    assert.deepEqual(refusal(reply), [502, 'GIT_TRANSPORT_FAILED'])
  })

  test('POST /git/clone answers 400 for fields that git could take for an option or a program', async () => {
    await using room = await GitRoom.start()
    const path = join(room.home, 'work')
    const proof = join(room.home, 'proof')
    for (const body of [
      { url: `--upload-pack=touch ${proof}`, path },
      { url: `ext::touch ${proof}`, path },
      { url: room.upstream, path, branch: `--upload-pack=touch ${proof}` },
      { url: room.upstream, path, commit_id: `--config=core.pager=touch ${proof}` },
      { url: `ssh://-oProxyCommand=touch ${proof}/x`, path },
    ]) {
      assert.deepEqual((await room.post('/clone', body)).status, 400, JSON.stringify(body))
    }
    assert.ok(!existsSync(proof))
    // Git cannot mistake an absolute path for an option, even if the name of the last directory in it begins with `--`.
    await room.done('/clone', { url: room.upstream, path: `${room.home}/--upload-pack=x` })
  })

  test('POST /git/clone refuses a git server with an untrusted certificate, unless the call allows that', async () => {
    await using room = await GitRoom.start()
    const [key, cert] = [join(room.directory, 'key'), join(room.directory, 'cert')]
    const made = ['-keyout', key, '-out', cert, '-newkey', 'rsa:2048', '-days', '2', '-subj', '/CN=127.0.0.1']
    execFileSync('openssl', ['req', '-x509', '-nodes', ...made], { stdio: 'pipe' })
    const pair = { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
    await using server = await GitServer.start(join(room.directory, 'served'), pair)
    const path = join(room.home, 'work')
    const body = { url: `${server.url}/upstream.git`, path, ...account }
    assert.deepEqual(refusal(await room.post('/clone', body)), [502, 'GIT_TRANSPORT_FAILED'])
    assert.deepEqual(server.authorizations, [])
    await room.done('/clone', { ...body, insecure_skip_tls: true })
    assert.deepEqual(refusal(await room.post('/pull', { path, ...account })), [502, 'GIT_TRANSPORT_FAILED'])
  })

  test('if a caller closes its connection during a git clone, the clone ends and leaves no files', async () => {
    await using room = await GitRoom.start()
    const path = join(room.home, 'work')
    const asked = Promise.withResolvers<void>()
    const released = Promise.withResolvers<void>()
    room.http.beforeServing = () => {
      asked.resolve()
      return released.promise
    }
    const hangUp = new AbortController()
    const body = { url: `${room.http.url}/upstream.git`, path, ...account }
    const reply = room.post('/clone', body, { signal: hangUp.signal }).catch((error) => error.name)
    await asked.promise
    assert.ok(existsSync(path))
    hangUp.abort()
    assert.equal(await reply, 'AbortError')
    await until(() => !existsSync(path), 'the clone being gone')
    released.resolve()
  })
})

suite('POST /git/init', () => {
  test('POST /git/init answers 200 and makes a repository with the requested branch', async () => {
    await using room = await GitRoom.start()
    const path = join(room.home, 'a/b')
    assert.equal((await room.done('/init', { path, initial_branch: 'trunk' })).status, 200)
    const status = (await room.get('/status', { path })).body
    assert.deepEqual([status.currentBranch, status.fileStatus, status.branchPublished], ['trunk', [], false])
    assert.deepEqual((await room.get('/history', { path })).body, [])
  })

  test('POST /git/init with `bare` makes a repository without a work tree', async () => {
    await using room = await GitRoom.start()
    await room.done('/init', { path: join(room.home, 'bare'), bare: true })
    assert.ok(existsSync(join(room.home, 'bare/HEAD')))
  })

  test('POST /git/init answers 403 if the user has no permission to write', async () => {
    // Root may write anywhere, so the sandbox's user is not root here, even if the tests run as root.
    await using room = await (isRoot
      ? GitRoom.start({ HOME: '/', GIT_CONFIG_SYSTEM: '/dev/null' }, 'nobody')
      : GitRoom.start())
    assert.deepEqual(refusal(await room.post('/init', { path: '/x' })), [403, 'FILE_ACCESS_DENIED'])
  })
})

suite('git calls on an image without git, or for a path without a repository', () => {
  test('git calls answer 422 if the image has no git', async () => {
    await using room = await GitRoom.start({ PATH: '/nowhere' })
    assert.deepEqual(refusal(await room.post('/init', { path: room.home })), [422, 'UNPROCESSABLE_ENTITY'])
  })

  test('git calls answer 404 for a path that is missing, is not a directory, or is not a repository', async () => {
    await using room = await GitRoom.start()
    writeFileSync(join(room.home, 'file'), '')
    for (const path of [room.home, join(room.home, 'file'), join(room.home, 'none')]) {
      for (const what of ['/status', '/history', '/branches', '/remotes']) {
        const reply = await room.get(what, { path })
        assert.deepEqual(refusal(reply), [404, 'GIT_REPO_NOT_FOUND'], `${what} ${path}`)
        const sentence = `directory not found: ${path}. There is no such directory.`
        if (path !== room.home) assert.equal(reply.body.message, sentence)
      }
    }
  })
})
