import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isUnreachable, kindOf, shownEntries } from './entries.ts'

const entry = (name: string, more: object = {}) => ({
  name,
  path: `/x/${name}`,
  isDir: false,
  size: 0,
  mode: '-rw-r--r--',
  modTime: '',
  modifiedAt: '2026-01-01T00:00:00.000Z',
  owner: 'a',
  group: 'a',
  permissions: '0644',
  ...more,
})
const all = [
  entry('file10', { size: 1 }),
  entry('file9', { size: 2 }),
  entry('.hidden'),
  entry('z', { isDir: true, mode: 'drwxr-xr-x' }),
]
const names = (options: Parameters<typeof shownEntries>[1]) => shownEntries(all, options).map(({ name }) => name)

test('a list of files shows directories first, and `file9` before `file10`', () => {
  const sort = { by: 'name', isDescending: false } as const
  assert.deepEqual(names({ sort, areHiddenShown: true }), ['z', '.hidden', 'file9', 'file10'])
  assert.deepEqual(names({ sort, areHiddenShown: false }), ['z', 'file9', 'file10'])
})

test('a list of files can be sorted by size in both directions, always with directories first', () => {
  assert.deepEqual(names({ sort: { by: 'size', isDescending: true }, areHiddenShown: false }), ['z', 'file9', 'file10'])
  assert.deepEqual(names({ sort: { by: 'size', isDescending: false }, areHiddenShown: false }), [
    'z',
    'file10',
    'file9',
  ])
})

test('`kindOf` finds from the mode whether an entry is a file, a directory, a link or something else', () => {
  const kinds = ['-rwxr-xr-x', 'Lrwxrwxrwx', 'prw-r--r--', 'Srwxr-xr-x', 'Dcrw-rw-rw-', 'u-rwxr-xr-x']
  assert.deepEqual(
    kinds.map((mode) => kindOf({ isDir: false, mode })),
    ['file', 'link', 'special', 'special', 'special', 'file'],
  )
  assert.equal(kindOf({ isDir: true, mode: 'dtrwxrwxrwx' }), 'directory')
})

test('`isUnreachable` is true for a file that the dashboard cannot open, because its name is not UTF-8', () => {
  assert.equal(isUnreachable({ path: '/x/a\uFFFDb' }), true)
  assert.equal(isUnreachable({ path: '/x/日本' }), false)
})
