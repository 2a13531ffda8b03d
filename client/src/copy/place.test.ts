import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { exitCodes, Failure } from '../failure.ts'
import { nameOf, readCopy, readPlace, splitTarget } from './place.ts'

suite('the paths of `alcove cp`', () => {
  test('SANDBOX:PATH is in a sandbox; a path with a slash before the colon is here', () => {
    assert.deepEqual(readPlace('box:/etc/x:y'), { sandbox: 'box', path: '/etc/x:y' })
    assert.deepEqual(readPlace('box:'), { sandbox: 'box', path: '.' })
    for (const path of ['./a:b', '/a:b', 'a/b:c', 'a', '..'])
      assert.deepEqual(readPlace(path), { sandbox: undefined, path })
  })

  test('a drive of Windows is no sandbox', () => {
    assert.deepEqual(readPlace('C:\\x', 'win32'), { sandbox: undefined, path: 'C:\\x' })
    assert.deepEqual(readPlace('c:x', 'linux'), { sandbox: 'c', path: 'x' })
  })

  test('one of the two paths must be in a sandbox, and the other here', () => {
    assert.deepEqual(readCopy('a', 'box:b'), { direction: 'up', sandbox: 'box', remote: 'b', local: 'a' })
    assert.deepEqual(readCopy('box:b', 'a'), { direction: 'down', sandbox: 'box', remote: 'b', local: 'a' })
    const isUsage = (error: unknown) => error instanceof Failure && error.exitCode === exitCodes.usage
    assert.throws(() => readCopy('a', 'b'), isUsage)
    assert.throws(() => readCopy('box:a', 'box:b'), isUsage)
    assert.throws(() => readCopy('', 'box:b'), isUsage)
  })

  test('a path that ends in a slash or has no name of its own is no name for a new file', () => {
    assert.deepEqual(splitTarget('a/b'), { directory: 'a', name: 'b' })
    assert.deepEqual(splitTarget('b'), { directory: '.', name: 'b' })
    for (const path of ['a/', '/', '.', 'a/..']) assert.throws(() => splitTarget(path), /no directory/)
    assert.deepEqual(['/x/y/', '/', '.', '..', 'a/..'].map(nameOf), ['y', undefined, undefined, undefined, undefined])
  })
})
