import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { overlapsDiskIds, releaseIds, reserveIds } from './reserved-ids.ts'

suite('the ids of sandboxes in /etc/subuid', () => {
  const directory = mkdtempSync(join(tmpdir(), 'alcove-ids-'))
  after(() => rmSync(directory, { recursive: true, force: true }))
  const file = join(directory, 'subuid')
  const write = (text: string) => writeFileSync(file, text, { mode: 0o644 })
  const text = () => readFileSync(file, 'utf8')

  test('one line of /etc/subuid reserves the ids of sandboxes, and releasing the ids removes that line', () => {
    write('ann:100000:65536\n')
    reserveIds([file])
    reserveIds([file])
    assert.equal(text(), 'ann:100000:65536\nalcove:165536:65536\n')
    assert.equal(statSync(file).mode & 0o777, 0o644)
    assert.deepEqual(readdirSync(directory), ['subuid'])
    releaseIds([file])
    assert.equal(text(), 'ann:100000:65536\n')
  })

  test('ids for sandboxes stay unreserved if /etc/subuid already lists some of them, is missing or is locked', () => {
    write('ann:100000:65536\nbob:165536:65536\n')
    reserveIds([file])
    releaseIds([file])
    assert.equal(text(), 'ann:100000:65536\nbob:165536:65536\n')
    reserveIds([join(directory, 'none')])
    write('')
    writeFileSync(`${file}.lock`, '1')
    reserveIds([file])
    assert.deepEqual([text(), readFileSync(`${file}.lock`, 'utf8')], ['', '1'])
    rmSync(`${file}.lock`)
    assert.deepEqual(readdirSync(directory), ['subuid'])
  })

  test('a line of /etc/subuid overlaps with the ids of sandboxes if it contains at least one of them', () => {
    assert.deepEqual(
      ['a:100000:65536', 'a:100000:65537', 'a:231071:1', 'a:231072:65536', '', '# a comment'].map(overlapsDiskIds),
      [false, true, true, false, false, false],
    )
  })
})
