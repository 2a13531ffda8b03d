import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { takeOverFormerNames } from './former-names.ts'

suite('files of a version whose gate was called proxy', () => {
  test('after an upgrade, log files of `proxy` are renamed to `gate`, and the cache of `proxy` is removed', (t) => {
    const root = mkdtempSync(join(tmpdir(), 'alcove-former-'))
    t.after(() => rmSync(root, { recursive: true, force: true }))
    const [log, cache] = [join(root, 'log'), join(root, 'cache')]
    for (const path of [log, join(cache, 'code', 'proxy'), join(cache, 'code', 'control')]) {
      mkdirSync(path, { recursive: true })
    }
    writeFileSync(join(cache, 'code', 'proxy', 'compiled'), '')
    writeFileSync(join(log, 'proxy.log'), 'new\n')
    writeFileSync(join(log, 'proxy.log.1'), 'old\n')
    writeFileSync(join(log, 'control.log'), 'other\n')

    for (let start = 0; start < 2; start++) takeOverFormerNames(log, cache)

    assert.deepEqual(readdirSync(log).sort(), ['control.log', 'gate.log', 'gate.log.1'])
    assert.deepEqual(
      ['gate.log', 'gate.log.1'].map((name) => readFileSync(join(log, name), 'utf8')),
      ['new\n', 'old\n'],
    )
    assert.deepEqual(readdirSync(join(cache, 'code')), ['control'])
  })

  test('at a first start, without files of an older version, nothing is renamed', (t) => {
    const root = mkdtempSync(join(tmpdir(), 'alcove-former-'))
    t.after(() => rmSync(root, { recursive: true, force: true }))
    takeOverFormerNames(root, join(root, 'cache'))
    assert.equal(existsSync(join(root, 'gate.log')), false)
  })
})
