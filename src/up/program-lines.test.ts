import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { ProgramLines } from './program-lines.ts'

const linesOf = () => {
  let text = ''
  const write = (chunk: string | Uint8Array) => {
    text += String(chunk)
  }
  const lines = new ProgramLines('gate', { write })
  return {
    lines,
    read: () =>
      text
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line)),
  }
}

suite('the log lines of a program', () => {
  test('a structured log line of a program is passed on unchanged, even if it arrives in pieces', () => {
    const { lines, read } = linesOf()
    const line = Buffer.from('{"level":30,"time":1,"program":"gate","msg":"für"}\n')
    for (const byte of line) lines.write(Buffer.from([byte]))
    assert.deepEqual(read(), [{ level: 30, time: 1, program: 'gate', msg: 'für' }])
  })

  test('a stack trace, a warning or JSON that is no log record becomes one structured log line', () => {
    const { lines, read } = linesOf()
    lines.write(
      Buffer.from('Error: 100% %s\n    at a (b.ts:1:2)\n    at c (d.ts:3:4)\n{"level":30,"msg":"x"}\n{"a":1}\n[1]\n'),
    )
    lines.write(Buffer.from('cut off'))
    lines.end()
    const found = read()
    assert.deepEqual(
      found.map(({ msg }) => msg),
      ['Error: 100% %s\n    at a (b.ts:1:2)\n    at c (d.ts:3:4)', 'x', '{"a":1}\n[1]', 'cut off'],
    )
    assert.deepEqual([found[0].level, found[0].program, typeof found[0].time], [40, 'gate', 'number'])
  })

  test('the log lines of a program are limited in length; lines of the same kind are also limited in number', () => {
    const { lines, read } = linesOf()
    for (let n = 0; n < 1000; n += 1) lines.write(Buffer.from(`(node:${n}) Warning: again\n`))
    assert.equal(read().length, 30)
    for (let n = 0; n < 20; n += 1) lines.write(Buffer.alloc(64 * 1024, 'x'))
    lines.write(Buffer.from('\n{"level":30,"msg":"after"}\n'))
    const [long, after] = read().slice(30)
    assert.ok(long.msg.length <= 8192)
    assert.equal(after.msg, 'after')
  })
})
