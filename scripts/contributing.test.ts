import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { suite, test } from 'node:test'

const root = resolve(import.meta.dirname, '..')
const text = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8')

/** The paths that CONTRIBUTING.md contains in backticks or as links. */
const named = [
  ...text.matchAll(/`((?:agent|bench|bin|docs|native|scripts|src|test)\/[^\s`…]*)`/g),
  ...text.matchAll(/\]\((?!https?:)([^)#]+)\)/g),
].map(([, path]) => path as string)

suite('CONTRIBUTING.md', () => {
  test('each file that CONTRIBUTING.md names exists; the word NOUN in a path stands for any folder', () => {
    assert.ok(named.length > 40, `${named.length} names`)
    const missing = named.filter((path) =>
      path.includes('NOUN')
        ? globSync(path.replace('NOUN', '*'), { cwd: root }).length === 0
        : path.includes('<')
          ? false
          : !existsSync(join(root, path)),
    )
    assert.deepEqual(missing, [])
  })
})
