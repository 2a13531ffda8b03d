import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { ignoredIn, Patterns } from './patterns.ts'

const leftOut = (lines: string, ...paths: string[]) => {
  const patterns = new Patterns(ignoredIn(lines))
  return paths.filter((path) => patterns.leaveOut(path))
}

suite('the patterns of .dockerignore and --exclude', () => {
  test('the last exclude pattern that matches a file decides; a pattern for a directory excludes its files', () => {
    assert.deepEqual(leftOut('*.md\n!README.md', 'a.md', 'README.md', 'sub/a.md'), ['a.md'])
    assert.deepEqual(leftOut('/node_modules/', 'node_modules', 'node_modules/a/b', 'x/node_modules'), [
      'node_modules',
      'node_modules/a/b',
    ])
    assert.deepEqual(leftOut('**\n!src', 'a', 'a/b', 'src', 'src/deep/file'), ['a', 'a/b'])
    assert.deepEqual(leftOut('# a comment\n\n  temp?  \n', 'temp1', 'temp', '# a comment'), ['temp1'])
  })

  test('`**` in an exclude pattern matches any number of directories, including none', () => {
    assert.deepEqual(leftOut('**/*.log', 'a.log', 'x/a.log', 'x/y/a.log', 'a.txt'), ['a.log', 'x/a.log', 'x/y/a.log'])
    assert.deepEqual(leftOut('a/**/z', 'a/z', 'a/b/z', 'a/b/c/z/below', 'z'), ['a/z', 'a/b/z', 'a/b/c/z/below'])
    assert.deepEqual(leftOut('a/**', 'a/b', 'b'), ['a/b'])
  })

  test('a COPY with too many exclude patterns is refused, and no exclude pattern takes unlimited time', () => {
    assert.throws(() => new Patterns(Array.from({ length: 1001 }, () => 'a')), /more than 1000 patterns/)
    assert.throws(() => new Patterns(['a/'.repeat(101)]), /has more than 100 names/)
    assert.throws(() => new Patterns(['[b-a]']), /is not a usable pattern/)
    assert.deepEqual(leftOut(`${'**/'.repeat(90)}x`, 'a/'.repeat(500)), [])
  })
})
