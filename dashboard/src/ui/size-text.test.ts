import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sizeText } from './size-text.ts'

test('the dashboard shows a number of bytes in B, KiB, MiB and so on, rounded to a few digits', () => {
  const sizes = [0, 1, 1023, 1024, 1536, 150 * 1024, 2 * 1024 ** 3, 3.2 * 1024 ** 4]
  assert.deepEqual(sizes.map(sizeText), ['0 B', '1 B', '1023 B', '1 KiB', '1.5 KiB', '150 KiB', '2 GiB', '3.2 TiB'])
})

test('the dashboard shows a dash for a size that is unknown or impossible, for example a negative size', () => {
  assert.deepEqual([null, undefined, -1, Number.NaN].map(sizeText), ['–', '–', '–', '–'])
})
