import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Stream, StreamSplitter } from './split-streams.ts'

const out = '\x01\x01\x01'
const err = '\x02\x02\x02'

/** Sends messages to a `StreamSplitter` and returns its pieces. Consecutive pieces of one stream are joined. */
const split = (messages: readonly (Buffer | string)[]) => {
  const pieces: [Stream, string][] = []
  const splitter = new StreamSplitter((stream, text) => {
    const last = pieces.at(-1)
    if (last?.[0] === stream) last[1] += text
    else pieces.push([stream, text])
  })
  for (const message of messages) splitter.push(Buffer.from(message as string))
  return pieces
}

test('`StreamSplitter` separates the stdout of a command’s log from its stderr', () => {
  assert.deepEqual(split([`${out}one${err}two`, `${err}three`, `${out}four`]), [
    ['stdout', 'one'],
    ['stderr', 'twothree'],
    ['stdout', 'four'],
  ])
})

test('`StreamSplitter` separates stdout and stderr, however a command’s output is split into messages', () => {
  const whole = Buffer.from(`${out}Grüße\n${err}日本${out}${err}\x01\x02\x01\x01end`)
  const expected = split([whole])
  assert.deepEqual(expected.at(-1), ['stderr', '日本\x01\x02\x01\x01end'])
  for (let at = 0; at <= whole.length; at++)
    assert.deepEqual(split([whole.subarray(0, at), whole.subarray(at)]), expected, `cut at ${at}`)
  assert.deepEqual(split([...whole].map((byte) => Buffer.of(byte))), expected)
})

test('`StreamSplitter` replaces bytes that are not UTF-8, and loses no text after them', () => {
  assert.deepEqual(split([Buffer.concat([Buffer.from(out), Buffer.of(0xff), Buffer.from('x')])]), [
    ['stdout', '\uFFFDx'],
  ])
})
