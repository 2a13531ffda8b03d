import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { GitApi } from '@daytona/toolbox-api-client'
import { GitRoom, refusal } from './testing/git-room.ts'

suite('GET /git/config, POST /git/config, POST /git/config/user', () => {
  test('POST /git/config uses the scope global by default, and an unset setting reads as null', async () => {
    await using room = await GitRoom.start()
    assert.deepEqual(await room.get('/config', { key: 'user.name' }), { status: 200, body: { value: null } })
    assert.equal((await room.done('/config', { key: 'user.name', value: '-x "ü"\nz ' })).status, 200)
    assert.deepEqual((await room.get('/config', { key: 'user.name', scope: 'global' })).body, { value: '-x "ü"\nz ' })
    assert.match(readFileSync(join(room.home, '.gitconfig'), 'utf8'), /name/)
  })

  test('a git setting has a value of its own in each scope: global, local and system', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    for (const scope of ['global', 'local', 'system']) {
      await room.done('/config', { key: 'a.b', value: scope, scope, path })
    }
    for (const scope of ['global', 'local', 'system']) {
      assert.equal((await room.get('/config', { key: 'a.b', scope, path })).body.value, scope)
    }
    assert.equal(readFileSync(join(room.directory, 'system'), 'utf8'), '[a]\n\tb = system\n')
    assert.equal(room.git(path, 'config', '--local', 'a.b'), 'local\n')
  })

  test('POST /git/config replaces several old values of a setting by the new one', async () => {
    await using room = await GitRoom.start()
    writeFileSync(join(room.home, '.gitconfig'), '[a "x.Y"]\n\tb = 1\n\tb = 2\n')
    assert.equal((await room.get('/config', { key: 'a.x.Y.b' })).body.value, '2')
    await room.done('/config', { key: 'a.x.Y.b', value: '3' })
    assert.equal(readFileSync(join(room.home, '.gitconfig'), 'utf8'), '[a "x.Y"]\n\tb = 3\n')
  })

  test('POST /git/config answers 400 for a bad key, a bad scope or the scope `local` without path; 404 for no repository', async () => {
    await using room = await GitRoom.start()
    const set = (more: object) => room.post('/config', { key: 'a.b', value: '1', ...more })
    for (const wrong of [
      { scope: 'local' },
      { scope: 'worktree' },
      { key: 'a' },
      { key: '--unset' },
      { key: 'a.b\nc.d' },
    ]) {
      assert.equal((await set(wrong)).status, 400, JSON.stringify(wrong))
    }
    assert.deepEqual(refusal(await set({ scope: 'local', path: room.home })), [404, 'GIT_REPO_NOT_FOUND'])
    const read = await room.get('/config', { key: 'a.b', scope: 'local', path: room.home })
    assert.deepEqual(refusal(read), [404, 'GIT_REPO_NOT_FOUND'])
  })

  test('GET /git/config answers 422 for a value that is too long for an answer', async () => {
    await using room = await GitRoom.start()
    writeFileSync(join(room.home, '.gitconfig'), `[a]\n\tb = ${'x'.repeat(17 * 1024 * 1024)}\n`)
    assert.deepEqual(refusal(await room.get('/config', { key: 'a.b' })), [422, 'UNPROCESSABLE_ENTITY'])
  })

  test('POST /git/config/user sets the name and the email of commits in one call', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    await room.done('/config/user', { name: 'Ada', email: 'ada@example.com' })
    await room.done('/config/user', { name: 'Bob', email: 'bob@example.com', scope: 'local', path })
    assert.equal((await room.get('/config', { key: 'user.name' })).body.value, 'Ada')
    assert.equal(room.git(path, 'config', '--local', 'user.email'), 'bob@example.com\n')
    assert.equal((await room.post('/config/user', { name: ' ', email: 'a' })).status, 400)
  })
})

suite('git endpoints, called by the API client of the public SDK', () => {
  test('the API client of the public SDK reaches every git endpoint, with the field names of the SDK', async () => {
    await using room = await GitRoom.start()
    const git = new GitApi(undefined, room.url)
    const path = join(room.home, 'work')
    await git.cloneRepository({ url: room.upstream, path })
    await git.configureUser({ name: 'Ada', email: 'ada@example.com' })
    await git.setGitConfig({ key: 'a.b', value: '1' })
    assert.equal((await git.getGitConfig('a.b')).data.value, '1')
    writeFileSync(join(path, 'new'), '')
    await git.addFiles({ path, files: ['.'] })
    assert.equal((await git.getStatus(path)).data.fileStatus[0]?.staging, 'Added')
    const { hash } = (await git.commitChanges({ path, message: 'm', author: 'A', email: 'a@b' })).data
    assert.equal((await git.getCommitHistory(path)).data[0]?.hash, hash)
    await git.createBranch({ path, name: 'x' })
    await git.checkoutBranch({ path, branch: 'x' })
    assert.equal((await git.listBranches(path)).data.current, 'x')
    await git.checkoutBranch({ path, branch: 'main' })
    await git.deleteBranch({ path, name: 'x' })
    await git.pullChanges({ path })
    await git.pushChanges({ path, set_upstream: true })
    await git.addRemote({ path, name: 'other', url: room.upstream, fetch: true })
    assert.equal((await git.listRemotes(path)).data.remotes.length, 2)
    await git.resetChanges({ path, mode: 'hard', target: 'HEAD~1' })
    await git.restoreFiles({ path, files: ['readme'] })
    await git.authenticate({ username: 'a', password: 'b' })
    await git.initRepository({ path: join(room.home, 'new') })
  })
})
