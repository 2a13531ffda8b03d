import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createLog } from './log.ts'

suite('the log of a program', () => {
  test('the log shows an error’s name, message, code and stack, but none of its properties that are objects', () => {
    const lines: string[] = []
    const log = createLog('test', 'warn', { write: (line) => void lines.push(line) })
    for (const name of ['err', 'error', 'cause']) {
      const error = Object.assign(new TypeError('not HTTP'), {
        code: 'HPE_INVALID_CONSTANT',
        rawPacket: Buffer.alloc(60_000),
        text: 'x'.repeat(60_000),
      })
      log.warn({ [name]: error }, 'what listens did not answer')
      const { type, message, code, stack, ...others } = JSON.parse(lines.at(-1)!)[name]
      assert.deepEqual(
        [type, message, code, 'rawPacket' in others],
        ['TypeError', 'not HTTP', 'HPE_INVALID_CONSTANT', false],
      )
      assert.match(stack, /log\.test\.ts/)
      assert.ok(lines.at(-1)!.length < 20_000)
    }
    log.warn({ cause: 'it closed the connection' }, 'x')
    assert.equal(JSON.parse(lines.at(-1)!).cause, 'it closed the connection')
  })
})
