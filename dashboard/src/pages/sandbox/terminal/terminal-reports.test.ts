import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isReport } from './terminal-reports.ts'

test('`isReport` is true for answers that a terminal itself sends, such as the position of its cursor', () => {
  for (const data of [
    '\x1b[?1;2c',
    '\x1b[>0;276;0c',
    '\x1b[12;40R',
    '\x1b[0n',
    '\x1b[?2026;2$y',
    '\x1bP1$r0m\x1b\\',
    '\x1b]10;rgb:ffff/ffff/ffff\x1b\\',
    '\x1b[1;1R\x1b[?1;2c',
  ])
    assert.ok(isReport(data), JSON.stringify(data))
})

test('`isReport` does not take a user’s keys for automatic answers of the terminal', () => {
  for (const data of ['a', '\r', '\x1b', '\x1b[A', '\x1bOP', '\x1b[3~', '\x1b[1;5C', '\x1b[200~x\x1b[201~', '\x03'])
    assert.ok(!isReport(data), JSON.stringify(data))
})
