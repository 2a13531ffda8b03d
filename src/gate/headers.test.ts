import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { suite, test } from 'node:test'
import { crossing } from './headers.ts'

/** Returns the names of the headers that the gate copies from a message with these headers. */
const copiedOf = (headers: Record<string, string>): string[] => {
  const rawHeaders = Object.entries(headers).flat()
  const copied = crossing({ headers, rawHeaders } as unknown as IncomingMessage, () => true)
  return copied.filter((_word, index) => index % 2 === 0)
}

suite('headers that the gate copies from one connection to the next', () => {
  test('a header that `Connection` names is not copied, and neither is `Connection` itself', () => {
    assert.deepEqual(copiedOf({ connection: 'X-Hop, close', 'x-hop': '1', 'x-end': '2' }), ['x-end'])
  })

  test('`Connection` cannot remove `Content-Length`, `Content-Type` or `Cache-Control` from a message', () => {
    const kept = { 'content-length': '5', 'content-type': 'text/plain', 'cache-control': 'no-store' }
    assert.deepEqual(copiedOf({ connection: Object.keys(kept).join(', '), ...kept }), Object.keys(kept))
  })
})
