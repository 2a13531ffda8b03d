import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { exitCodes, Failure } from '../failure.ts'
import { nameOf, readCopy, readPlace, splitTarget } from './place.ts'

suite('the arguments of `alcove cp`', () => {
  test('`alcove cp` reads SANDBOX:PATH as a path in a sandbox, unless a slash comes before the colon', () => {
    assert.deepEqual(readPlace('box:/etc/x:y'), { sandbox: 'box', path: '/etc/x:y' })
    assert.deepEqual(readPlace('box:'), { sandbox: 'box', path: '.' })
    for (const path of ['./a:b', '/a:b', 'a/b:c', 'a', '..'])
      assert.deepEqual(readPlace(path), { sandbox: undefined, path })
  })

  test('on Windows, `alcove cp` reads `C:` as a drive and not as a sandbox', () => {
    assert.deepEqual(readPlace('C:\\x', 'win32'), { sandbox: undefined, path: 'C:\\x' })
    assert.deepEqual(readPlace('c:x', 'linux'), { sandbox: 'c', path: 'x' })
  })

  test('`alcove cp` needs one path in a sandbox and one local path', () => {
    assert.deepEqual(readCopy('a', 'box:b'), { direction: 'up', sandbox: 'box', remote: 'b', local: 'a' })
    assert.deepEqual(readCopy('box:b', 'a'), { direction: 'down', sandbox: 'box', remote: 'b', local: 'a' })
    const isUsage = (error: unknown) => error instanceof Failure && error.exitCode === exitCodes.usage
    assert.throws(() => readCopy('a', 'b'), isUsage)
    assert.throws(() => readCopy('box:a', 'box:b'), isUsage)
    assert.throws(() => readCopy('', 'box:b'), isUsage)
  })

  test('`splitTarget` rejects a path that ends in a slash, `.` or `..`, because it names no new file', () => {
    assert.deepEqual(splitTarget('a/b'), { directory: 'a', name: 'b' })
    assert.deepEqual(splitTarget('b'), { directory: '.', name: 'b' })
    for (const path of ['a/', '/', '.', 'a/..']) assert.throws(() => splitTarget(path), /no directory/)
    assert.deepEqual(['/x/y/', '/', '.', '..', 'a/..'].map(nameOf), ['y', undefined, undefined, undefined, undefined])
  })
})
