import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, suite, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { needsRoot } from '#test/needs-root.ts'
import { ensureDashboard, findDashboardPlace } from './ensure.ts'

suite('the build of the dashboard', { skip: needsRoot }, () => {
  let scratch: string
  let source: string
  let said: string[]

  beforeEach(() => {
    scratch = mkdtempSync(join(tmpdir(), 'alcove-dashboard-'))
    source = join(scratch, 'pages')
    said = []
    mkdirSync(source)
    writeFileSync(join(source, 'index.html'), '<!doctype html><script type="module" src="/main.ts"></script>')
    writeFileSync(join(source, 'main.ts'), `const word: string = 'hello'\n${'console.log(word)\n'.repeat(200)}`)
    writeFileSync(join(source, 'vite.config.ts'), "export default { base: '/dashboard/' }\n")
  })
  afterEach(() => rmSync(scratch, { recursive: true, force: true }))

  const place = () => findDashboardPlace(join(scratch, 'cache'), source)
  const ensure = () => ensureDashboard(place(), (line) => void said.push(line))
  const left = () => readdirSync(join(scratch, 'cache', 'dashboard')).filter((name) => name !== '.lock')

  test('a server’s first start builds the dashboard; later starts build it only after changes in its sources', async () => {
    assert.equal(await ensure(), undefined)
    const { directory } = place()
    const page = readFileSync(join(directory, 'index.html'), 'utf8')
    const [, name = ''] = /src="\/dashboard\/(assets\/[\w-]+\.js)"/.exec(page) ?? []
    const script = readFileSync(join(directory, name), 'utf8')
    assert.match(script, /hello/)
    assert.equal(gunzipSync(readFileSync(join(directory, `${name}.gz`))).toString(), script)
    assert.equal(await ensure(), undefined)
    writeFileSync(join(source, 'main.test.ts'), 'a test changes no page')
    assert.equal(await ensure(), undefined)
    assert.deepEqual(said, ['Building dashboard/ …'])
    writeFileSync(join(source, 'main.ts'), 'console.log(2)')
    assert.notEqual(place().directory, directory)
    assert.equal(await ensure(), undefined)
    assert.equal(said.length, 2)
    assert.ok(existsSync(directory))
  })

  test('only root can change the files of a built dashboard, but every program can read these files', async () => {
    assert.equal(await ensure(), undefined)
    const { all, directory } = place()
    const entries = readdirSync(directory, { recursive: true, encoding: 'utf8' }).map((name) => join(directory, name))
    for (const path of [all, directory, ...entries]) {
      const { uid, gid, mode } = statSync(path)
      assert.deepEqual([uid, gid, mode & 0o022, mode & 0o004], [0, 0, 0, 0o004], path)
    }
  })

  test('the build program runs without privileges: it cannot read a file that only root may read', async () => {
    const secret = join(source, 'secret.ts')
    writeFileSync(secret, 'export const secret = 1', { mode: 0o600 })
    writeFileSync(join(source, 'main.ts'), "import { secret } from './secret.ts'\nconsole.log(secret)")
    assert.match((await ensure()) ?? '', /secret/)
  })

  test('if two servers start at the same time, only one of them builds the dashboard', async () => {
    assert.deepEqual(await Promise.all([ensure(), ensure(), ensure()]), [undefined, undefined, undefined])
    assert.equal(said.length, 1)
    assert.equal(left().length, 1)
  })

  test('a failed build of the dashboard writes the reason to a file, and the next start builds again', async () => {
    const good = readFileSync(join(source, 'main.ts'))
    writeFileSync(join(source, 'main.ts'), "import './missing.ts'\n")
    const why = (await ensure()) ?? ''
    assert.match(why, /missing\.ts/)
    assert.ok(!why.includes('\n') && !why.includes('\u001b'), why)
    const { directory } = place()
    assert.ok(!existsSync(directory))
    assert.equal(readFileSync(`${directory}.failed`, 'utf8'), `${why}\n`)
    assert.equal(await ensure(), why)
    writeFileSync(join(source, 'main.ts'), good)
    assert.equal(await ensure(), undefined)
    rmSync(join(source, 'index.html'))
    assert.match((await ensure()) ?? '', /has no pages/)
  })

  test('files of a killed build, and built dashboards that no server has used for a month, are removed', async () => {
    const { all } = place()
    mkdirSync(join(all, '.coming-1', 'assets'), { recursive: true })
    const old = join(all, 'old')
    mkdirSync(old)
    mkdirSync(join(all, 'recent'))
    const before = new Date(Date.now() - 31 * 24 * 60 * 60 * 1000)
    utimesSync(old, before, before)
    assert.equal(await ensure(), undefined)
    assert.deepEqual(left().sort(), [place().directory.slice(all.length + 1), 'recent'].sort())
  })
})
