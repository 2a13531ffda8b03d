import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readPort, type SignedLink, withoutEnded } from './signed-links.ts'

suite('links to previews', () => {
  test('`readPort` accepts only whole numbers that a port can have', () => {
    assert.deepEqual(['1', ' 3000 ', '65535'].map(readPort), [1, 3000, 65_535])
    for (const wrong of ['', '0', '65536', '80a', '-1', '1.5']) assert.equal(readPort(wrong), undefined, wrong)
  })

  test('`withoutEnded` removes links that have expired', () => {
    const link = (endsAt: number) => ({ endsAt }) as SignedLink
    assert.deepEqual(withoutEnded([link(10), link(11)], 10), [link(11)])
  })
})
