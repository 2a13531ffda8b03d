import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { GitRoom, refusal } from './testing/git-room.ts'

const mainOf = (room: GitRoom) => room.git(room.upstream, 'rev-parse', 'main').trim()

suite('POST /git/pull', () => {
  test('POST /git/pull fetches and merges the upstream of the current branch', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    room.advance({ readme: 'two\n' })
    assert.deepEqual(await room.post('/pull', { path }), { status: 200, body: undefined })
    assert.equal(readFileSync(join(path, 'readme'), 'utf8'), 'two\n')
  })

  test('POST /git/pull merges changes without conflicts, and does not ask for a message', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    await room.done('/config/user', { name: 'A', email: 'a@b' })
    room.advance({ theirs: '1' })
    room.commit(path, { mine: '1' }, 'mine')
    await room.done('/pull', { path })
    assert.ok(existsSync(join(path, 'theirs')) && existsSync(join(path, 'mine')))
    assert.deepEqual((await room.get('/status', { path })).body.fileStatus, [])
  })

  test('POST /git/pull accepts a named branch and remote, even in a repository without a commit', async () => {
    await using room = await GitRoom.start()
    const path = join(room.home, 'new')
    await room.done('/init', { path, initial_branch: 'main' })
    await room.done('/remotes', { path, name: 'there', url: room.upstream })
    await room.done('/pull', { path, remote: 'there', branch: 'main' })
    assert.equal(readFileSync(join(path, 'readme'), 'utf8'), 'one\n')
  })

  test('POST /git/pull of a branch without an upstream pulls the branch of the same name at origin', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    room.git(path, 'branch', '--unset-upstream')
    room.advance({ readme: 'two\n' })
    await room.done('/pull', { path })
    assert.equal(readFileSync(join(path, 'readme'), 'utf8'), 'two\n')
  })

  test('POST /git/pull leaves a conflict in the work tree, and answers 409 until the conflict is resolved', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    await room.done('/config/user', { name: 'A', email: 'a@b' })
    room.advance({ readme: 'theirs\n' })
    room.commit(path, { readme: 'ours\n' }, 'ours')
    for (const _ of ['first', 'again']) {
      assert.deepEqual(refusal(await room.post('/pull', { path })), [409, 'GIT_MERGE_CONFLICT'])
    }
    assert.match(readFileSync(join(path, 'readme'), 'utf8'), /<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>>/)
    // A merge that is resolved but not committed still blocks the next pull. After the commit the pull works.
    writeFileSync(join(path, 'readme'), 'both\n')
    await room.done('/add', { path, files: ['readme'] })
    assert.deepEqual(refusal(await room.post('/pull', { path })), [409, 'GIT_MERGE_CONFLICT'])
    await room.done('/commit', { path, message: 'both', author: 'A', email: 'a@b' })
    await room.done('/pull', { path })
  })

  test('POST /git/pull answers 409 if local changes would be lost', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    room.advance({ readme: 'theirs\n', other: '1' })
    writeFileSync(join(path, 'readme'), 'mine\n')
    assert.deepEqual(refusal(await room.post('/pull', { path })), [409, 'GIT_DIRTY_WORKTREE'])
    room.git(path, 'checkout', 'readme')
    writeFileSync(join(path, 'other'), 'mine\n')
    assert.deepEqual(refusal(await room.post('/pull', { path })), [409, 'GIT_DIRTY_WORKTREE'])
    assert.equal(readFileSync(join(path, 'other'), 'utf8'), 'mine\n')
  })

  test('POST /git/pull answers 404 for a missing branch, remote or repository, 400 for an option or refspec', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    const pull = (more: object) => room.post('/pull', { path, ...more })
    assert.deepEqual(refusal(await pull({ branch: 'nope' })), [404, 'GIT_BRANCH_NOT_FOUND'])
    assert.deepEqual(refusal(await pull({ remote: 'nope' })), [404, 'NOT_FOUND'])
    for (const wrong of [{ remote: '--upload-pack=id' }, { branch: '--force' }, { branch: '+main:main' }]) {
      assert.equal((await pull(wrong)).status, 400)
    }
    room.git(path, 'checkout', '--detach')
    assert.deepEqual(refusal(await pull({})), [400, 'BAD_REQUEST'])
    room.git(path, 'remote', 'add', 'gone', join(room.directory, 'gone'))
    assert.deepEqual(refusal(await pull({ remote: 'gone', branch: 'main' })), [404, 'GIT_REPO_NOT_FOUND'])
  })
})

suite('POST /git/push', () => {
  test('POST /git/push sends the current branch to the remote branch of the same name', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    const hash = room.commit(path, { mine: '1' }, 'mine')
    assert.deepEqual(await room.post('/push', { path }), { status: 200, body: undefined })
    assert.equal(mainOf(room), hash)
    // A push without new commits is not an error.
    await room.done('/push', { path })
  })

  test('POST /git/push accepts a named branch and remote, and sets the upstream if requested', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    room.git(path, 'remote', 'rename', 'origin', 'there')
    await room.done('/branches', { path, name: 'feature' })
    await room.done('/push', { path, remote: 'there', branch: 'feature', set_upstream: true })
    await room.done('/checkout', { path, branch: 'feature' })
    const { upstream, branchPublished } = (await room.get('/status', { path })).body
    assert.deepEqual([upstream, branchPublished], ['there/feature', true])
    assert.equal(room.git(room.upstream, 'branch', '--list', 'feature').trim(), 'feature')
  })

  test('POST /git/push answers 409 if the remote has newer commits or refuses the push', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    const theirs = room.advance({ readme: 'theirs\n' })
    room.commit(path, { mine: '1' }, 'mine')
    assert.deepEqual(refusal(await room.post('/push', { path })), [409, 'GIT_PUSH_REJECTED'])
    assert.equal(mainOf(room), theirs)
    room.git(path, 'pull', '--no-rebase')
    writeFileSync(join(room.upstream, 'hooks/pre-receive'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
    assert.deepEqual(refusal(await room.post('/push', { path })), [409, 'GIT_REMOTE_REJECTED'])
    assert.equal(mainOf(room), theirs)
  })

  test('POST /git/push answers 404 for a missing branch or remote, and does not accept a refspec', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    const push = (more: object) => room.post('/push', { path, ...more })
    assert.deepEqual(refusal(await push({ branch: 'nope' })), [404, 'GIT_BRANCH_NOT_FOUND'])
    assert.deepEqual(refusal(await push({ remote: 'nope' })), [404, 'NOT_FOUND'])
    for (const wrong of [{ branch: ':main' }, { branch: '--mirror' }, { remote: room.upstream.replace('/', '-/') }]) {
      assert.equal((await push(wrong)).status, 400)
    }
    // `+main` does not force a push: it is the name of a branch, which does not exist.
    assert.deepEqual(refusal(await push({ branch: '+main' })), [404, 'GIT_BRANCH_NOT_FOUND'])
    room.git(path, 'checkout', '--detach')
    assert.deepEqual(refusal(await push({})), [400, 'BAD_REQUEST'])
  })
})

suite('GET /git/remotes, POST /git/remotes', () => {
  test('GET /git/remotes lists each remote’s name and URL unchanged', async () => {
    await using room = await GitRoom.start()
    const path = join(room.home, 'new')
    await room.done('/init', { path })
    assert.deepEqual((await room.get('/remotes', { path })).body, { remotes: [] })
    const body = { path, name: 'a.b/c', url: 'git@example.com:x/y.git' }
    assert.deepEqual(await room.post('/remotes', body), { status: 201, body: undefined })
    assert.deepEqual((await room.get('/remotes', { path })).body.remotes, [{ name: body.name, url: body.url }])
  })

  test('POST /git/remotes answers 409 for an existing remote, unless the call overwrites it', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    room.git(path, 'config', 'remote.origin.pushurl', '/elsewhere')
    const body = { path, name: 'origin', url: '/nowhere' }
    assert.deepEqual(refusal(await room.post('/remotes', body)), [409, 'CONFLICT'])
    await room.done('/remotes', { ...body, overwrite: true })
    assert.equal(room.git(path, 'remote', '--verbose'), 'origin\t/nowhere (fetch)\norigin\t/nowhere (push)\n')
  })

  test('POST /git/remotes fetches the new remote immediately if requested', async () => {
    await using room = await GitRoom.start()
    const path = join(room.home, 'new')
    await room.done('/init', { path })
    await room.done('/remotes', { path, name: 'origin', url: room.upstream, fetch: true })
    assert.equal(room.git(path, 'branch', '--remotes').trim(), 'origin/main')
    const gone = { path, name: 'gone', url: `${room.upstream}x`, fetch: true }
    assert.deepEqual(refusal(await room.post('/remotes', gone)), [404, 'GIT_REPO_NOT_FOUND'])
  })

  test('POST /git/remotes answers 400 for an option as name or URL, a bad name, and a URL with a password', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    for (const wrong of [
      { name: '-f' },
      { name: 'a b' },
      { url: '--tags' },
      { url: 'https://a:b@host/x' },
      { name: '' },
    ]) {
      assert.equal((await room.post('/remotes', { path, name: 'x', url: '/y', ...wrong })).status, 400)
    }
    assert.equal(room.git(path, 'remote').trim(), 'origin')
  })
})
