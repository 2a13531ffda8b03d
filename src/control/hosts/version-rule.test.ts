import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { refusalOfVersion } from './version-rule.ts'

suite('which versions of a host work with a version of control', () => {
  test('control refuses hosts that are more than one minor version older or newer than control', () => {
    const parts = [0, 1, 2, 3, 9, 10, 11, 12]
    for (const major of parts)
      for (const minor of parts)
        for (const ofHostMajor of parts)
          for (const ofHostMinor of parts) {
            const isFine = major === ofHostMajor && [minor - 1, minor, minor + 1].includes(ofHostMinor)
            const refusal = refusalOfVersion(`${ofHostMajor}.${ofHostMinor}.7`, `${major}.${minor}.0`)
            assert.equal(refusal === undefined, isFine, `${ofHostMajor}.${ofHostMinor} with ${major}.${minor}`)
          }
  })

  test('patch versions and suffixes are ignored when versions of host and control are compared', () => {
    for (const version of ['1.2', '1.2.0', '1.2.999', '1.2.0-test', '1.2.0+build.7', '1.3.0-rc.1'])
      assert.equal(refusalOfVersion(version, '1.2.3'), undefined, version)
  })

  test('control refuses a host whose version does not have the form of a version', () => {
    for (const version of ['', '1', 'v1.2.0', '1.x', ' 1.2.0', '-1.2.0', '1.9999999999', '1..2', '１.2.0'])
      assert.notEqual(refusalOfVersion(version, '1.2.3'), undefined, version)
  })

  test('the reason why control refuses a host’s version names both versions and fits a WebSocket close frame', () => {
    assert.equal(
      refusalOfVersion('0.1.0', '0.9.0'),
      'this host has version 0.1.0, the server 0.9.0: they may be at most one release apart',
    )
    const longest = refusalOfVersion(`1.2.3-${'ä\n'.repeat(30)}`, `9.9.9-${'x'.repeat(60)}`)
    assert.ok(Buffer.byteLength(longest ?? '') <= 123, String(longest))
    assert.doesNotMatch(longest ?? '', /[^\x20-\x7e]/)
  })
})
