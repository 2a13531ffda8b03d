import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { CauseBudget, causeOf } from './cause-budget.ts'
import { createLog } from './log.ts'

const logOf = (level = 'info') => {
  const lines: Record<string, unknown>[] = []
  let endMinute = () => {}
  const budget = new CauseBudget(3, (work) => {
    endMinute = work
  })
  const log = createLog('test', level, { write: (line) => void lines.push(JSON.parse(line)) }, budget)
  return { log, lines, endMinute: () => endMinute() }
}

suite('the limit of log lines of one cause', () => {
  test('a program writes at most 30 log lines of a cause a minute, and then one line that counts the others', () => {
    const { log, lines, endMinute } = logOf()
    const fail = (n: number) => new Error(`no answer from 10.0.0.${n}`)
    for (let n = 0; n < 20; n += 1) log.child({ reqId: n }).warn({ err: fail(n), sandboxId: n }, 'could not be asked')
    assert.equal(lines.length, 3)
    endMinute()
    assert.equal(lines.length, 4)
    assert.deepEqual([lines[3]!['level'], lines[3]!['suppressed']], [40, 17])
    assert.match(String(lines[3]!['msg']), /^suppressed 17 lines of this cause: could not be asked/)
    log.warn({ err: fail(1) }, 'could not be asked')
    assert.equal(lines.length, 5)
  })

  test('log lines of one cause do not use up the limit of other causes, and fatal lines are always written', () => {
    const { log, lines } = logOf()
    for (let n = 0; n < 10; n += 1) log.warn('the first')
    log.warn('the second')
    for (let n = 0; n < 10; n += 1) log.fatal('the end')
    assert.equal(lines.filter(({ msg }) => msg === 'the second').length, 1)
    assert.equal(lines.filter(({ msg }) => msg === 'the end').length, 10)
  })

  test('if more than 500 kinds of log lines come in a minute, all further kinds share one limit', () => {
    const budget = new CauseBudget(3, () => {})
    const letters = (n: number) => n.toString(26).replace(/\d/g, (digit) => String.fromCharCode(113 + Number(digit)))
    const taken = Array.from({ length: 2000 }, (_, n) => budget.take(letters(n), () => {})).filter(Boolean)
    assert.equal(taken.length, 503)
  })

  test('log lines have different causes if their message, or the name, code or origin of their error differs', () => {
    const error = (code: string) => Object.assign(new Error('x'), { code })
    const [one, same, other] = ['A', 'A', 'B'].map((code) => causeOf([{ err: error(code) }, 'failed']))
    assert.equal(one, same)
    assert.notEqual(one, other)
    assert.notEqual(one, causeOf([{ err: error('A') }, 'broke']))
    assert.equal(causeOf(['took 5 ms']), causeOf(['took 7 ms']))
  })
})
