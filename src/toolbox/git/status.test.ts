import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { readStatus } from './status.ts'
import { GitRoom } from './testing/git-room.ts'

const row = (name: string, staging: string, worktree: string, extra = '') => ({ name, staging, worktree, extra })
const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1)

suite('GET /git/status', () => {
  test('GET /git/status of a clean clone lists no changed files, and no commits ahead or behind', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    assert.deepEqual((await room.get('/status', { path })).body, {
      currentBranch: 'main',
      fileStatus: [],
      ahead: 0,
      behind: 0,
      branchPublished: true,
      detached: false,
      upstream: 'origin/main',
    })
  })

  test('GET /git/status names the kind of each file’s change, in the index and in the work tree', async () => {
    await using room = await GitRoom.start()
    room.advance({ changed: '1', deleted: '1', moved: 'a long text\nthat git knows again\n', link: '1', mode: '1' })
    const path = await room.clone()
    writeFileSync(join(path, 'changed'), '2')
    rmSync(join(path, 'deleted'))
    room.git(path, 'mv', 'moved', 'new place')
    rmSync(join(path, 'link'))
    symlinkSync('readme', join(path, 'link'))
    chmodSync(join(path, 'mode'), 0o755)
    writeFileSync(join(path, 'added'), '1')
    room.git(path, 'add', 'added', 'mode')
    writeFileSync(join(path, 'added'), '2')
    mkdirSync(join(path, 'dir'))
    writeFileSync(join(path, 'dir/untracked'), '')
    const { fileStatus } = (await room.get('/status', { path })).body
    assert.deepEqual(
      fileStatus.sort(byName),
      [
        row('added', 'Added', 'Modified'),
        row('changed', 'Unmodified', 'Modified'),
        row('deleted', 'Unmodified', 'Deleted'),
        row('dir/untracked', 'Untracked', 'Untracked'),
        row('link', 'Unmodified', 'Modified'),
        row('mode', 'Modified', 'Unmodified'),
        row('new place', 'Renamed', 'Unmodified', 'moved'),
      ].sort(byName),
    )
  })

  test('GET /git/status reports a conflict in the index and in the work tree', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    room.advance({ readme: 'theirs\n', both: 'a' })
    room.commit(path, { readme: 'ours\n', both: 'b' }, 'ours')
    await room.done('/config/user', { name: 'A', email: 'a@b' })
    await room.post('/pull', { path })
    const word = 'Updated but unmerged'
    assert.deepEqual((await room.get('/status', { path })).body.fileStatus, [
      row('both', word, word),
      row('readme', word, word),
    ])
  })

  test('GET /git/status counts commits ahead and behind; a branch without an upstream counts as not published', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    room.commit(path, { mine: '1' }, 'mine')
    room.commit(path, { mine: '2' }, 'mine too')
    room.advance({ theirs: '1' })
    room.git(path, 'fetch')
    const { ahead, behind } = (await room.get('/status', { path })).body
    assert.deepEqual([ahead, behind], [2, 1])
    room.git(path, 'branch', '--unset-upstream')
    const alone = (await room.get('/status', { path })).body
    assert.deepEqual([alone.ahead, alone.behind, alone.branchPublished, alone.upstream], [0, 0, false, ''])
  })

  test('GET /git/status lists names with any characters, and invalid UTF-8 as U+FFFD', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    const names = [
      'a b',
      '"q"',
      "it's",
      'new\nline',
      'tab\there',
      'ü',
      ' lead',
      '# branch.head x',
      '? y',
      'a -> b',
      '\\',
    ]
    for (const name of names) writeFileSync(join(path, name), '')
    writeFileSync(Buffer.concat([Buffer.from(join(path, 'bad-')), Buffer.of(0xff, 0xfe)]), '')
    const { fileStatus, currentBranch } = (await room.get('/status', { path })).body
    assert.equal(currentBranch, 'main')
    assert.deepEqual(fileStatus.map(({ name }: { name: string }) => name).sort(), [...names, 'bad-\ufffd\ufffd'].sort())
  })

  test('GET /git/status answers the same with an unusual git configuration in the sandbox as without', async () => {
    await using room = await GitRoom.start()
    const path = await room.clone()
    const settings =
      '[status]\n\tshowStash = true\n\trelativePaths = false\n\trenames = false\n\tshowUntrackedFiles = no\n'
    writeFileSync(
      join(room.home, '.gitconfig'),
      `${settings}\tshort = true\n[color]\n\tui = always\n\tstatus = always\n`,
    )
    room.git(path, 'mv', 'readme', 'other')
    writeFileSync(join(path, 'new'), '')
    const { fileStatus } = (await room.get('/status', { path })).body
    assert.deepEqual(fileStatus, [
      row('other', 'Renamed', 'Unmodified', 'readme'),
      row('new', 'Untracked', 'Untracked'),
    ])
  })
})

suite('reading the output of git status', () => {
  test('`readStatus` skips unknown lines in the output of git, and reads empty output as an empty status', () => {
    const empty = readStatus(Buffer.alloc(0))
    assert.deepEqual([empty.fileStatus, empty.currentBranch], [[], ''])
    const { currentBranch, fileStatus } = readStatus(Buffer.from('# stash 3\0# branch.head a\0! ignored\0x y z\0? b\0'))
    assert.deepEqual([currentBranch, fileStatus], ['a', [row('b', 'Untracked', 'Untracked')]])
  })
})
