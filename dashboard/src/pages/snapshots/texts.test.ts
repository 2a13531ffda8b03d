import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { sizeText } from './texts.ts'

suite('the texts that the dashboard shows about a snapshot', () => {
  test('the dashboard shows the size of a snapshot in MiB if it is below 1 GiB, and otherwise in GiB', () => {
    assert.deepEqual([0.0001, 0.25, 1, 2.345, 120].map(sizeText), [
      'under 1 MiB',
      '256 MiB',
      '1 GiB',
      '2.3 GiB',
      '120 GiB',
    ])
    assert.equal(sizeText(null), '–')
  })
})
