import assert from 'node:assert/strict'
import { chownSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { GitRoom, refusal } from './testing/git-room.ts'

suite('GET /git/branches, POST /git/branches, DELETE /git/branches, POST /git/checkout', () => {
  test('git branches can be created, listed, checked out and deleted', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    assert.deepEqual(await room.post('/branches', { path, name: 'feature/ü' }), { status: 201, body: undefined })
    assert.deepEqual((await room.get('/branches', { path })).body, { branches: ['feature/ü', 'main'], current: 'main' })
    assert.equal((await room.done('/checkout', { path, branch: 'feature/ü' })).status, 200)
    assert.equal((await room.get('/branches', { path })).body.current, 'feature/ü')
    assert.deepEqual(await room.call('DELETE', '/branches', { path, name: 'main' }), { status: 204, body: undefined })
    assert.deepEqual((await room.get('/branches', { path })).body.branches, ['feature/ü'])
  })

  test('GET /git/branches and GET /git/status name the branch, even if a tag has the same name', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    room.git(path, 'tag', 'main')
    assert.deepEqual((await room.get('/branches', { path })).body, { branches: ['main'], current: 'main' })
    assert.equal((await room.get('/status', { path })).body.currentBranch, 'main')
  })

  test('GET /git/branches shows a branch without a commit as current; at a detached HEAD, none is current', async () => {
    await using room = await GitRoom.start()
    const fresh = join(room.home, 'new')
    await room.done('/init', { path: fresh, initial_branch: 'trunk' })
    assert.deepEqual((await room.get('/branches', { path: fresh })).body, { branches: [], current: 'trunk' })
    const path = await room.clone()
    await room.done('/checkout', { path, branch: 'HEAD^0' })
    assert.deepEqual((await room.get('/branches', { path })).body, { branches: ['main'], current: '' })
  })

  test('POST /git/checkout of a branch that only the remote has makes a local branch that tracks it', async () => {
    await using room = await GitRoom.start()
    room.advance({ readme: 'next\n' }, 'next')
    const path = await room.clone()
    await room.done('/checkout', { path, branch: 'next' })
    const { currentBranch, upstream } = (await room.get('/status', { path })).body
    assert.deepEqual([currentBranch, upstream], ['next', 'origin/next'])
  })

  test('POST /git/checkout checks out a branch even if a file has the same name', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    await room.done('/branches', { path, name: 'readme' })
    writeFileSync(join(path, 'readme'), 'mine')
    await room.done('/checkout', { path, branch: 'readme' })
    assert.equal(readFileSync(join(path, 'readme'), 'utf8'), 'mine')
    assert.equal((await room.get('/branches', { path })).body.current, 'readme')
  })

  test('git branch calls answer 4xx with the reason for an invalid, missing, existing or current branch', async () => {
    await using room = await GitRoom.start()
    room.advance({ readme: 'next\n' }, 'next')
    const path = await room.clone()
    const make = (name: string) => room.post('/branches', { path, name })
    const remove = (name: string) => room.call('DELETE', '/branches', { path, name })
    assert.deepEqual(refusal(await make('main')), [409, 'GIT_BRANCH_EXISTS'])
    for (const name of ['a..b', '-d', '--force', 'a b', 'x.lock', '', 'a\nb', '@{-1}']) {
      assert.equal((await make(name)).status, 400, name)
    }
    assert.deepEqual(refusal(await remove('nope')), [404, 'GIT_BRANCH_NOT_FOUND'])
    assert.deepEqual(refusal(await remove('main')), [409, 'CONFLICT'])
    const none = await room.post('/checkout', { path, branch: 'nope' })
    assert.deepEqual(refusal(none), [404, 'GIT_BRANCH_NOT_FOUND'])
    assert.equal((await room.post('/checkout', { path, branch: '--orphan=x' })).status, 400)
    writeFileSync(join(path, 'readme'), 'mine\n')
    const dirty = await room.post('/checkout', { path, branch: 'next' })
    assert.deepEqual(refusal(dirty), [409, 'GIT_DIRTY_WORKTREE'])
    assert.equal(readFileSync(join(path, 'readme'), 'utf8'), 'mine\n')
    assert.equal((await room.get('/branches', { path })).body.current, 'main')
  })

  test('git calls in a repository that belongs to another user answer 403, because git refuses them', {
    skip: needsRoot,
  }, async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    chownSync(path, 4242, 4242)
    chownSync(join(path, '.git'), 4242, 4242)
    assert.deepEqual(refusal(await room.get('/branches', { path })), [403, 'FILE_ACCESS_DENIED'])
  })

  test('POST /git/add answers 409 while another git process holds the index lock', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    writeFileSync(join(path, '.git/index.lock'), '')
    assert.deepEqual(refusal(await room.post('/add', { path, files: ['readme'] })), [409, 'CONFLICT'])
    assert.equal((await room.get('/status', { path })).status, 200)
  })
})
