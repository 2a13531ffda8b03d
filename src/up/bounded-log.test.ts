import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { BoundedLog } from './bounded-log.ts'

suite('a log of limited size', () => {
  const directory = mkdtempSync(join(tmpdir(), 'alcove-log-'))
  after(() => rmSync(directory, { recursive: true, force: true }))

  test('a log of limited size has its newest lines in one file, and older lines in a second file', () => {
    const path = join(directory, 'a.log')
    const log = new BoundedLog(path, 100)
    for (let n = 0; n < 50; n += 1) log.write(`line ${String(n).padStart(3, '0')}\n`)
    log.close()
    assert.match(readFileSync(path, 'utf8'), /line 049\n$/)
    assert.ok(statSync(path).size <= 100)
    assert.ok(statSync(`${path}.1`).size <= 100)
  })

  test('a program that starts again continues its existing log, whose size stays limited', () => {
    const path = join(directory, 'b.log')
    const runs = ['first', 'second', 'third', 'fourth']
    for (const run of runs) {
      const log = new BoundedLog(path, 20)
      log.write(`${run}\n`)
      log.close()
    }
    assert.equal(readFileSync(path, 'utf8'), 'fourth\n')
    assert.equal(readFileSync(`${path}.1`, 'utf8'), 'first\nsecond\nthird\n')
  })

  test('if a program’s new log file cannot be opened, the log goes on in the old file, and rotates later', () => {
    const gone = join(directory, 'gone')
    mkdirSync(gone)
    const path = join(gone, 'a.log')
    const log = new BoundedLog(path, 10)
    log.write('123456789\n')
    rmSync(gone, { recursive: true })
    for (let n = 0; n < 3; n += 1) log.write('lost\n')
    mkdirSync(gone)
    log.write('found\n')
    log.close()
    assert.equal(readFileSync(path, 'utf8'), 'found\n')
  })

  test('only the owner of a log file can read it', () => {
    const path = join(directory, 'c.log')
    new BoundedLog(path).close()
    assert.equal(statSync(path).mode & 0o777, 0o600)
  })
})
