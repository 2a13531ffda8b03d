import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { BoundedOutput } from '#src/toolbox/running/output.ts'
import { ArtifactSieve, chartMark } from './artifacts.ts'

const chartLine = (value: unknown) => `${chartMark}${JSON.stringify({ type: 'chart', value })}\n`

const sieved = (pieces: readonly (string | Buffer)[]) => {
  using output = new BoundedOutput('o')
  using sieve = new ArtifactSieve(output)
  for (const piece of pieces) sieve.take(Buffer.from(piece))
  sieve.end()
  return { text: output.text(), charts: sieve.charts }
}

suite('lines with charts in the output of a program', () => {
  test('lines with charts are taken out of a program’s output and collected; other lines keep their order', () => {
    assert.deepEqual(sieved([`a\n${chartLine({ n: 1 })}b\n${chartLine({ n: 2 })}c`]), {
      text: 'a\nb\nc',
      charts: [{ n: 1 }, { n: 2 }],
    })
  })

  test('charts are found in a program’s output wherever the output is cut into pieces', () => {
    const whole = Buffer.from(`dtn_\n${chartLine({ n: 'é' })}x dtn_artifact_k39fd2:{}\n\n${chartLine({ n: 2 })}dtn_art`)
    const expected = { text: 'dtn_\nx dtn_artifact_k39fd2:{}\n\ndtn_art', charts: [{ n: 'é' }, { n: 2 }] }
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: whole.length }), { maxLength: 20 }), (cuts) => {
        const edges = [0, ...cuts.toSorted((a, b) => a - b), whole.length]
        const pieces = edges.slice(1).map((edge, i) => whole.subarray(edges[i], edge))
        assert.deepEqual(sieved(pieces), expected)
      }),
    )
  })

  test('malformed lines with charts are removed from a program’s output and ignored', () => {
    const bad = [
      '',
      '{',
      '[]',
      'null',
      '"x"',
      '{"type":"other","value":{}}',
      '{"type":"chart"}',
      '{"type":"chart","value":[]}',
    ]
    assert.deepEqual(sieved(bad.map((text) => `${chartMark}${text}\n`)), { text: '', charts: [] })
  })

  test('a chart in the last line of a program’s output is collected even if that line has no newline', () => {
    assert.deepEqual(sieved([chartLine({ n: 1 }).trimEnd()]), { text: '', charts: [{ n: 1 }] })
  })

  test('a program’s chart is dropped if it is too large, or if all charts so far are too many or too large', () => {
    const long = chartLine({ long: 'x'.repeat(9 * 1024 * 1024) })
    assert.deepEqual(sieved([long, 'text\n', chartLine({ n: 1 })]), { text: 'text\n', charts: [{ n: 1 }] })
    assert.equal(sieved(Array.from({ length: 100 }, (_, n) => chartLine({ n }))).charts.length, 64)
    const large = chartLine({ large: 'x'.repeat(7 * 1024 * 1024) })
    assert.equal(sieved(Array.from({ length: 6 }, () => large)).charts.length, 4)
    const many = chartLine({ many: Array.from({ length: 100_000 }, () => ({})) })
    assert.equal(sieved(Array.from({ length: 3 }, () => many)).charts.length, 2)
  })
})
