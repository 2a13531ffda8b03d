import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import type { ImageConfig } from '#src/wire/runner-link.ts'
import { startToolbox, type Toolbox } from './testing/toolbox.ts'

const configWith = (workdir: string): ImageConfig => ({ entrypoint: [], env: { FROM: 'image' }, user: '', workdir })

suite('the working directory of an image', () => {
  let directory: string
  let box: Toolbox
  const ok = async (asked: Promise<{ status: number; body: unknown }>) => {
    const { status, body } = await asked
    assert.ok(status < 300, JSON.stringify(body))
    return body as Record<string, string>
  }
  const run = async (command: string, cwd?: string) =>
    (await ok(box.post('/process/execute', { command, ...(cwd === undefined ? {} : { cwd }) })))['result']

  before(async () => {
    directory = realpathSync(mkdtempSync(join(tmpdir(), 'alcove-work-é-')))
    mkdirSync(join(directory, 'sub'))
    writeFileSync(join(directory, 'sub/note'), 'needle\n')
    box = await startToolbox({}, { config: configWith(`${directory}/`) })
  })
  after(async () => {
    await box[Symbol.asyncDispose]()
    rmSync(directory, { recursive: true, force: true })
  })

  test('commands start in the image’s working directory, which GET /work-dir returns', async () => {
    assert.equal(await run('pwd'), `${directory}\n`)
    assert.equal(await run('pwd; echo "$PWD"; echo "$FROM"'), `${directory}\n${directory}\nimage\n`)
    assert.deepEqual(await ok(box.get('/work-dir')), { dir: directory })
    assert.deepEqual(await ok(box.get('/user-home-dir')), { dir: homedir() })
  })

  test('a command’s relative cwd starts at the user’s home, even if the image has a working directory', async () => {
    assert.equal(await run('pwd', '.'), `${homedir()}\n`)
    assert.equal(await run('pwd', '/usr'), '/usr\n')
  })

  test('code-run, sessions, terminals and interpreters start in the image’s working directory', async () => {
    const code = await ok(box.post('/process/code-run', { code: 'import os; print(os.getcwd())', language: 'python' }))
    assert.equal(code['result'], `${directory}\n`)
    await ok(box.post('/process/session', { sessionId: 's' }))
    const said = await ok(box.post('/process/session/s/exec', { command: 'pwd' }))
    assert.equal(said['output'], `${directory}\n`)
    assert.equal((await ok(box.post('/process/pty', { id: 'p' })))['cwd'], directory)
    assert.equal((await ok(box.post('/process/interpreter/context', {})))['cwd'], directory)
  })

  test('relative paths in file calls start in the image’s working directory', async () => {
    const at = (path: string) => encodeURIComponent(path)
    const listed = (await ok(box.get(`/files?path=${at('.')}`))) as unknown as { name: string; path: string }[]
    assert.deepEqual(
      listed.map(({ name, path }) => [name, path]),
      [['sub', join(directory, 'sub')]],
    )
    await ok(box.post(`/files/folder?path=${at('made')}&mode=755`, undefined))
    await ok(box.post(`/files/move?source=${at('sub/note')}&destination=${at('made/note')}`, undefined))
    assert.equal(readFileSync(join(directory, 'made/note'), 'utf8'), 'needle\n')
    const found = (await ok(box.get('/files/find?path=made&pattern=needle'))) as unknown as { file: string }[]
    assert.deepEqual(
      found.map(({ file }) => file),
      ['made/note'],
    )
    assert.deepEqual((await ok(box.get('/files/search?path=made&pattern=note')))['files'], ['made/note'])
    await ok(box.delete('/files?path=made/note'))
    assert.equal(existsSync(join(directory, 'made/note')), false)
  })

  test('relative paths in git calls start in the image’s working directory', async () => {
    await ok(box.post('/git/init', { path: 'repository' }))
    assert.equal(existsSync(join(directory, 'repository/.git')), true)
    assert.equal((await box.get('/git/status?path=repository')).status, 200)
  })

  test('processes of calls start in the home if the image’s working directory is missing or inaccessible', async () => {
    await using other = await startToolbox({}, { config: configWith('/nowhere/at/all') })
    assert.deepEqual((await other.get('/work-dir')).body, { dir: homedir() })
    assert.equal((await other.post('/process/execute', { command: 'pwd' })).body.result, `${homedir()}\n`)
    assert.equal((await other.post('/process/session', { sessionId: 's' })).status, 201)
    assert.equal((await other.post('/process/pty', { id: 'p' })).body.cwd, homedir())
    const { body } = await other.post('/process/execute', { command: 'pwd', cwd: '/nowhere/at/all' })
    assert.match(body.message, /"\/nowhere\/at\/all" cannot be used/)
  })

  test('GET /work-dir returns the home if the image has no working directory; relative paths start at home', async () => {
    await using other = await startToolbox({}, { config: configWith('/') })
    assert.deepEqual((await other.get('/work-dir')).body, { dir: homedir() })
    assert.deepEqual((await other.get('/files/info?path=.')).body.path, homedir())
  })
})
