// During an upgrade, control of the previous release still runs with the new schema. These tests find migrations that would make
// the previous release fail.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'

const directory = join(import.meta.dirname, 'migrations')
/**
 * The last migration for which all control processes had to be stopped. During later migrations, control of the previous release
 * keeps running.
 */
const lastOfBefore = 54
/**
 * Statements that remove or change something that control of the previous release may read or write during an upgrade.
 */
const narrowing = /\bdrop\s+(table|column)|\brename\b|\bset\s+not\s+null\b|\balter\s+column\s+\w+\s+type\b/i
const needsValue = /\badd\s+column\b[^,;]*\bnot\s+null\b(?![^,;]*\bdefault\b)/i

suite('migrations', () => {
  test('a migration removes nothing, or explains after "-- Safe:" why the previous release still works', () => {
    const wrong = readdirSync(directory)
      .filter((name) => Number.parseInt(name, 10) > lastOfBefore)
      .filter((name) => {
        const text = readFileSync(join(directory, name), 'utf8')
        return (narrowing.test(text) || needsValue.test(text)) && !/^-- Safe: /m.test(text)
      })
    assert.deepEqual(wrong, [])
  })

  test('the patterns of this test find statements of a migration that break the previous release', () => {
    for (const text of ['drop table a', 'alter table a drop column b', 'alter table a rename b to c']) {
      assert.match(text, narrowing)
    }
    assert.match('alter table a add column b text not null', needsValue)
    assert.doesNotMatch("alter table a add column b text not null default ''", needsValue)
  })
})
