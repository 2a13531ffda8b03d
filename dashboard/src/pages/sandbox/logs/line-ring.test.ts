import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LineRing } from './line-ring.ts'

const texts = (ring: LineRing) => ring.lines().map(({ text }) => text)

test('the log view’s buffer (`LineRing`) joins the pieces of a line, separately for each stream', () => {
  const ring = new LineRing()
  ring.push('stdout', 'one\ntw')
  ring.push('stderr', 'bad\r\n')
  ring.push('stdout', 'o\nthr')
  assert.deepEqual(ring.lines(), [
    { number: 1, stream: 'stdout', text: 'one' },
    { number: 2, stream: 'stderr', text: 'bad' },
    { number: 3, stream: 'stdout', text: 'two' },
    { number: 4, stream: 'stdout', text: 'thr' },
  ])
})

test('the full buffer of the log view drops and counts the oldest lines; other lines keep their numbers', () => {
  const ring = new LineRing({ lines: 3, characters: 1000, lineLength: 100 })
  for (let i = 1; i <= 1000; i++) ring.push('stdout', `line ${i}\n`)
  assert.deepEqual(texts(ring), ['line 998', 'line 999', 'line 1000'])
  assert.deepEqual([ring.dropped, ring.lines()[0]!.number], [997, 998])
})

test('the log view’s buffer limits its characters too, so a few very long lines cannot fill the memory', () => {
  const ring = new LineRing({ lines: 1000, characters: 250, lineLength: 100 })
  for (let i = 0; i < 10; i++) ring.push('stdout', `${'x'.repeat(100)}\n`)
  assert.equal(ring.lines().length, 2)
})

test('the log view’s buffer (`LineRing`) cuts an endless line into several lines of bounded length', () => {
  const ring = new LineRing({ lines: 5, characters: 1000, lineLength: 10 })
  for (let i = 0; i < 1000; i++) ring.push('stdout', 'abcdefg')
  assert.ok(ring.lines().every(({ text }) => text.length <= 10))
  assert.ok(ring.lines().length <= 6)
})

test('after `clear`, the log view’s buffer (`LineRing`) has no lines and counts no dropped lines', () => {
  const ring = new LineRing()
  ring.push('stdout', 'a\nb')
  ring.clear()
  assert.deepEqual([ring.lines(), ring.dropped], [[], 0])
})
