import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crumbsOf, join, nameOf, parentOf, problemOfName } from './paths.ts'

test('`join` puts exactly one slash between a directory and a name', () => {
  assert.deepEqual([join('/', 'a'), join('/a', 'b c'), join('/a/', '..')], ['/a', '/a/b c', '/a/..'])
})

test('in the files tab, the parent of the root directory is the root directory (`parentOf`)', () => {
  assert.deepEqual(['/', '/a', '/a/b', '/a/b/'].map(parentOf), ['/', '/', '/a', '/a'])
  assert.deepEqual(['/', '/a', '/a/b/'].map(nameOf), ['/', 'a', 'b'])
})

test('the path above a list of files has every directory from the root on, whatever the names contain', () => {
  assert.deepEqual(crumbsOf('/home/<img>\n/x'), [
    { name: '/', path: '/' },
    { name: 'home', path: '/home' },
    { name: '<img>\n', path: '/home/<img>\n' },
    { name: 'x', path: '/home/<img>\n/x' },
  ])
})

test('the files tab accepts exactly the file names that Linux accepts', () => {
  for (const name of ['a', ' ', '...', '"\'<\n', 'ü'.repeat(127)]) assert.equal(problemOfName(name), undefined)
  for (const name of ['', '.', '..', 'a/b', 'a\0', 'ü'.repeat(128)]) assert.notEqual(problemOfName(name), undefined)
})
