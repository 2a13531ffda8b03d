import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { checkAllowList } from './network-policy.ts'

suite('networkAllowList', () => {
  test('CIDRs are taken with and without spaces, once each', () => {
    assert.deepEqual(checkAllowList('1.2.3.4/32, 10.0.0.0/8,10.0.0.0/8'), ['1.2.3.4/32', '10.0.0.0/8'])
  })

  test('nothing is no list, which is not an empty one', () => {
    assert.equal(checkAllowList(''), null)
    assert.equal(checkAllowList(undefined), null)
    assert.equal(checkAllowList(' , '), null)
  })

  for (const wrong of [
    '1.2.3.4',
    '1.2.3.4/33',
    '1.2.3/8',
    '::1/128',
    '1.2.3.4/8/8',
    'a.b.c.d/8',
    '1.2.3.4/ 8',
    '1.2.3.4/-1',
    '01.2.3.4/8',
  ]) {
    test(`"${wrong}" is refused`, () => {
      assert.throws(() => checkAllowList(wrong), { status: 400 })
    })
  }

  test('eleven are refused', () => {
    assert.throws(() => checkAllowList(Array.from({ length: 11 }, (_, n) => `10.0.${n}.0/24`).join(',')), {
      status: 400,
    })
  })
})
