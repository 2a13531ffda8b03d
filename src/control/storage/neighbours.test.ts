// During an upgrade, the version before runs on the new schema.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'

const directory = join(import.meta.dirname, 'migrations')
/** The last migration before several controls could be upgraded one after the other. */
const lastOfBefore = 54
/** Statements that take away something that the version before may read or write. */
const narrowing = /\bdrop\s+(table|column)|\brename\b|\bset\s+not\s+null\b|\balter\s+column\s+\w+\s+type\b/i
const needsValue = /\badd\s+column\b[^,;]*\bnot\s+null\b(?![^,;]*\bdefault\b)/i

suite('migrations', () => {
  test('a migration only adds, or says after "-- Safe:" why the version before can do without', () => {
    const wrong = readdirSync(directory)
      .filter((name) => Number.parseInt(name, 10) > lastOfBefore)
      .filter((name) => {
        const text = readFileSync(join(directory, name), 'utf8')
        return (narrowing.test(text) || needsValue.test(text)) && !/^-- Safe: /m.test(text)
      })
    assert.deepEqual(wrong, [])
  })

  test('this file finds migrations that take something away', () => {
    for (const text of ['drop table a', 'alter table a drop column b', 'alter table a rename b to c']) {
      assert.match(text, narrowing)
    }
    assert.match('alter table a add column b text not null', needsValue)
    assert.doesNotMatch("alter table a add column b text not null default ''", needsValue)
  })
})
