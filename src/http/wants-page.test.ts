import assert from 'node:assert/strict'
import { test } from 'node:test'
import { wantsPage } from './wants-page.ts'

test('a caller gets an HTML page only if the call’s `Accept` header prefers HTML to JSON', () => {
  const pages = [
    'text/html',
    'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8',
    'application/json;q=0.5, TEXT/HTML ; q=0.9',
  ]
  const json = [
    undefined,
    '',
    '*/*',
    'application/json',
    'application/json, text/plain, */*',
    'text/html;q=0',
    'text/html, application/json',
    'text/htmlx',
    ','.repeat(10_000),
  ]
  for (const accept of pages) assert.equal(wantsPage(accept), true, accept)
  for (const accept of json) assert.equal(wantsPage(accept), false, String(accept))
})
