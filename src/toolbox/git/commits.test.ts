import assert from 'node:assert/strict'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { until } from '../agent/testing/native-agent.ts'
import { GitRoom, refusal } from './testing/git-room.ts'

const author = { author: 'Ada Lovelace', email: 'ada@example.com' }

suite('POST /git/add, POST /git/commit', () => {
  test('POST /git/commit commits the staged changes in the author’s name, and returns the commit’s hash', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    writeFileSync(join(path, 'a'), '1')
    writeFileSync(join(path, 'b'), '1')
    assert.deepEqual(await room.post('/add', { path, files: ['a'] }), { status: 200, body: undefined })
    const message = '# not a comment\n\nbody — “ü”'
    const { status, body } = await room.post('/commit', { path, message, ...author })
    assert.equal(status, 200)
    assert.equal(body.hash, room.git(path, 'rev-parse', 'HEAD').trim())
    assert.equal(
      room.git(path, 'show', '--no-patch', '--format=%an|%ae|%cn|%ce|%B', 'HEAD').trim(),
      `Ada Lovelace|ada@example.com|Ada Lovelace|ada@example.com|${message}`,
    )
    assert.equal(room.git(path, 'show', '--name-only', '--format=').trim(), 'a')
  })

  test('POST /git/add of a dot stages all changes, including deletions', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    rmSync(join(path, 'readme'))
    writeFileSync(join(path, 'new'), '1')
    await room.done('/add', { path, files: ['.'] })
    assert.equal(room.git(path, 'diff', '--cached', '--name-status', '--no-renames'), 'A\tnew\nD\treadme\n')
  })

  test('POST /git/add takes a file name literally: never as a pattern, an option or pathspec magic', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    const odd = ['*', '--all', ':!x', 'a b', '"q"', 'new\nline', 'ü', '\\']
    for (const name of [...odd, 'other']) writeFileSync(join(path, name), '1')
    for (const name of odd) await room.done('/add', { path, files: [name] })
    const staged = room.git(path, 'diff', '--cached', '--name-only', '-z').split('\0').filter(Boolean)
    assert.deepEqual(staged.sort(), odd.sort())
  })

  test('POST /git/add accepts more names than fit on a command line', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    const files = Array.from({ length: 4000 }, (_, index) => `${'x'.repeat(200)}${index}`)
    writeFileSync(join(path, files[3999]!), '1')
    const missing = await room.post('/add', { path, files })
    assert.deepEqual(refusal(missing), [404, 'FILE_NOT_FOUND'])
    for (const file of files) writeFileSync(join(path, file), '')
    await room.done('/add', { path, files })
    assert.equal(room.git(path, 'diff', '--cached', '--name-only').trim().split('\n').length, 4000)
  })

  test('POST /git/add answers 404 for a missing file, and 400 for a call without files', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    const reply = await room.post('/add', { path, files: ['nope'] })
    assert.deepEqual(refusal(reply), [404, 'FILE_NOT_FOUND'])
    assert.equal(reply.body.message, "pathspec 'nope' did not match any files (not found)")
    for (const files of [[], [''], undefined, ['a\0b']])
      assert.equal((await room.post('/add', { path, files })).status, 400)
  })

  test('POST /git/commit answers 409 if there is nothing to commit, unless the call allows an empty commit', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    const message = 'empty'
    assert.deepEqual(refusal(await room.post('/commit', { path, message, ...author })), [409, 'CONFLICT'])
    writeFileSync(join(path, 'untracked'), '')
    assert.deepEqual(refusal(await room.post('/commit', { path, message, ...author })), [409, 'CONFLICT'])
    writeFileSync(join(path, 'readme'), 'changed, not staged')
    assert.deepEqual(refusal(await room.post('/commit', { path, message, ...author })), [409, 'CONFLICT'])
    await room.done('/commit', { path, message, ...author, allow_empty: true })
  })

  test('POST /git/commit answers 400 without a message or an author', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    for (const wrong of [{ message: ' \n ' }, { author: ' ' }, { author: 'a\nb' }, { email: '' }, { author: '<>' }]) {
      const reply = await room.post('/commit', { path, message: 'm', ...author, allow_empty: true, ...wrong })
      assert.equal(reply.status, 400, JSON.stringify(wrong))
      assert.doesNotMatch(reply.body.message, /pattern/, 'what is allowed, in words')
    }
    assert.equal((await room.get('/history', { path })).body.length, 1)
  })

  test('POST /git/commit returns the message of a hook that refuses, without control characters', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    const hook = "#!/bin/sh\nprintf '\\033[31mno tests\\033[0m\\a\\n'; exit 1\n"
    writeFileSync(join(path, '.git/hooks/pre-commit'), hook, { mode: 0o755 })
    const reply = await room.post('/commit', { path, message: 'm', ...author, allow_empty: true })
    assert.deepEqual([...refusal(reply), reply.body.message], [400, 'BAD_REQUEST', 'no tests'])
  })
})

suite('a caller that hangs up during a commit', () => {
  test('if a caller closes its connection during a commit, git and its hook end, and no lock file is left', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    const pidFile = join(room.home, 'pid')
    const hook = `#!/bin/sh\necho $$ >${pidFile}\nwhile :; do sleep 0.2; done\n`
    writeFileSync(join(path, '.git/hooks/pre-commit'), hook, { mode: 0o755 })
    const hangUp = new AbortController()
    const body = { path, message: 'm', ...author, allow_empty: true }
    const reply = room.post('/commit', body, { signal: hangUp.signal }).catch((error) => error.name)
    await until(() => existsSync(pidFile) && readFileSync(pidFile, 'utf8').endsWith('\n'), 'the hook')
    const pid = Number(readFileSync(pidFile, 'utf8'))
    hangUp.abort()
    assert.equal(await reply, 'AbortError')
    await until(() => !existsSync(`/proc/${pid}`), 'the end of the hook')
    await until(() => !existsSync(join(path, '.git/index.lock')), 'the end of its lock')
  })
})

suite('GET /git/history', () => {
  test('GET /git/history lists commits newest first, with the whole message and the author’s time', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    await room.done('/commit', { path, message: 'subject\n\nline one\nline two', ...author, allow_empty: true })
    const { body } = await room.get('/history', { path })
    assert.deepEqual(
      body.map(({ message, author, email }: Record<string, string>) => [message, author, email]),
      [
        ['subject\n\nline one\nline two', 'Ada Lovelace', 'ada@example.com'],
        ['first', 'Seed', 'seed@example.com'],
      ],
    )
    for (const { hash, timestamp } of body) {
      assert.match(hash, /^[0-9a-f]{40}$/)
      assert.equal(new Date(timestamp).getTime() / 1000, Number(room.git(path, 'show', '-s', '--format=%at', hash)))
    }
  })
})

suite('POST /git/reset', () => {
  test('POST /git/reset does a mixed reset to HEAD by default', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    writeFileSync(join(path, 'readme'), 'changed')
    room.git(path, 'add', '.')
    await room.done('/reset', { path })
    assert.equal(room.git(path, 'status', '--short'), ' M readme\n')
  })

  test('POST /git/reset to a revision undoes all changes with mode hard, and keeps all changes with mode soft', async () => {
    await using room = await GitRoom.start()
    room.advance({ readme: 'two\n' })
    const path = await room.clone()
    await room.done('/reset', { path, mode: 'hard', target: 'HEAD~1' })
    assert.equal(readFileSync(join(path, 'readme'), 'utf8'), 'one\n')
    await room.done('/reset', { path, mode: 'soft', target: 'origin/main' })
    assert.equal(room.git(path, 'status', '--short'), 'M  readme\n')
  })

  test('POST /git/reset can be limited to named files', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    for (const name of ['a', '*']) writeFileSync(join(path, name), '1')
    room.git(path, 'add', '.')
    await room.done('/reset', { path, files: ['*'] })
    assert.equal(room.git(path, 'status', '--short'), 'A  a\n?? *\n')
    assert.equal((await room.post('/reset', { path, files: ['a'], mode: 'hard' })).status, 400)
  })

  test('POST /git/reset works in a repository without a commit', async () => {
    await using room = await GitRoom.start()
    const path = join(room.home, 'new')
    await room.done('/init', { path })
    writeFileSync(join(path, 'a'), '1')
    await room.done('/add', { path, files: ['a'] })
    await room.done('/reset', { path })
    assert.equal(room.git(path, 'status', '--short'), '?? a\n')
  })

  test('POST /git/reset answers 404 for an unknown revision, and 400 for an option or an unknown mode', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    for (const target of ['nope', 'f'.repeat(40)]) {
      assert.deepEqual(refusal(await room.post('/reset', { path, target })), [404, 'GIT_BRANCH_NOT_FOUND'])
    }
    assert.equal((await room.post('/reset', { path, target: '--hard' })).status, 400)
    const unknown = await room.post('/reset', { path, mode: 'recurse-submodules' })
    assert.deepEqual(
      [unknown.status, unknown.body.message],
      [400, 'body.mode must be one of soft, mixed, hard, merge, keep'],
    )
  })
})

suite('POST /git/restore', () => {
  test('POST /git/restore restores the work tree by default', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    writeFileSync(join(path, 'readme'), 'changed')
    await room.done('/restore', { path, files: ['readme'], staged: false, worktree: null })
    assert.equal(readFileSync(join(path, 'readme'), 'utf8'), 'one\n')
  })

  test('POST /git/restore can restore the index alone, or index and work tree, from a revision', async () => {
    await using room = await GitRoom.start()
    room.advance({ readme: 'two\n', extra: '' })
    const path = await room.clone()
    writeFileSync(join(path, 'readme'), 'changed')
    room.git(path, 'add', '.')
    await room.done('/restore', { path, files: ['readme'], staged: true })
    assert.equal(room.git(path, 'status', '--short'), ' M readme\n')
    await room.done('/restore', { path, files: ['.'], staged: true, worktree: true, source: 'HEAD~1' })
    assert.equal(room.git(path, 'status', '--short'), 'D  extra\nM  readme\n')
    assert.ok(!existsSync(join(path, 'extra')))
  })

  test('POST /git/restore answers 404 for a missing file or revision', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    assert.deepEqual(refusal(await room.post('/restore', { path, files: ['no'] })), [404, 'FILE_NOT_FOUND'])
    const source = await room.post('/restore', { path, files: ['readme'], source: 'nope' })
    assert.deepEqual(refusal(source), [404, 'GIT_BRANCH_NOT_FOUND'])
  })
})
