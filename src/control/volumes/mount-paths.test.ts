import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readMounts } from './mount-paths.ts'

const at = (mountPath: string, subpath?: string) => ({
  volumeId: 'v',
  mountPath,
  ...(subpath === undefined ? {} : { subpath }),
})

suite('the mounts of a sandbox', () => {
  test('an absolute mount path is accepted; only a slash at its end is removed', () => {
    assert.deepEqual(readMounts([at('/data'), at('/home/daytona/work/', 'users/alice/')]), [
      { volumeId: 'v', mountPath: '/data' },
      { volumeId: 'v', mountPath: '/home/daytona/work', subpath: 'users/alice' },
    ])
    assert.deepEqual(readMounts([at('/procedures'), at('/devel'), at('/etcetera'), at('/library')]).length, 4)
    assert.deepEqual(readMounts([at('/a', ''), { ...at('/b'), subpath: null }]), [at('/a'), at('/b')])
  })

  test('a mount path that is relative, not normalized, or a system directory is refused', () => {
    const refused = [
      '',
      '/',
      '//',
      '///',
      'data',
      './data',
      '/a//b',
      '/a/./b',
      '/a/../b',
      '/..',
      '/a/..',
      '/a\0b',
      '/a\nb',
      '/\ud800',
    ]
    const reserved = ['/proc', '/proc/', '/proc/1', '/sys', '/dev', '/dev/.alcove', '/dev/.alcove/agent', '/dev/shm']
    const system = ['/etc', '/etc/hosts', '/bin', '/sbin/x', '/lib', '/lib64', '/boot']
    for (const path of [...refused, ...reserved, ...system, `/${'x'.repeat(256)}`])
      assert.throws(() => readMounts([at(path)]), { status: 400 }, JSON.stringify(path))
  })

  test('a subpath that leads out of its volume, or is not normalized, is refused', () => {
    for (const subpath of ['/', '/a', '..', 'a/..', '../a', 'a/../b', '.', './a', 'a//b', 'a\0b', 'a\nb'])
      assert.throws(() => readMounts([at('/data', subpath)]), { status: 400 }, JSON.stringify(subpath))
  })

  test('two volumes mounted at the same path, or one inside the other, are refused', () => {
    for (const [one, other] of [
      ['/a', '/a'],
      ['/a', '/a/'],
      ['/a', '/a/b'],
      ['/a/b/c', '/a'],
    ] as const)
      assert.throws(() => readMounts([at(one), at(other)]), { status: 400 }, `${one} ${other}`)
    assert.equal(readMounts([at('/a'), at('/ab'), at('/b/a')]).length, 3)
  })
})
