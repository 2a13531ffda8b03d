import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readPort, type SignedLink, withoutEnded } from './signed-links.ts'

suite('links to previews', () => {
  test('the form for a preview link accepts as a port only a whole number from 1 to 65535', () => {
    assert.deepEqual(['1', ' 3000 ', '65535'].map(readPort), [1, 3000, 65_535])
    for (const wrong of ['', '0', '65536', '80a', '-1', '1.5']) assert.equal(readPort(wrong), undefined, wrong)
  })

  test('`withoutEnded` removes preview links that have expired from the list', () => {
    const link = (endsAt: number) => ({ endsAt }) as SignedLink
    assert.deepEqual(withoutEnded([link(10), link(11)], 10), [link(11)])
  })
})
