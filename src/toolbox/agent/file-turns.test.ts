import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { takeTurn } from './file-turns.ts'

suite('the queue of file operations of a sandbox', () => {
  test('if 64 file writes of a sandbox run and 1,000 wait, another write is refused, but a read still runs', async () => {
    const first = await Promise.all(Array.from({ length: 64 }, () => takeTurn('write', 'box')))
    const waiting = Array.from({ length: 1000 }, () => takeTurn('write', 'box'))
    await assert.rejects(takeTurn('write', 'box'), { name: 'AgentRefused', stage: 'busy', errno: 'EAGAIN' })
    const reading = await takeTurn('read', 'box')
    const other = await takeTurn('write', 'other')
    for (const turn of [reading, other, ...first]) turn[Symbol.dispose]()
    for (const turn of waiting) (await turn)[Symbol.dispose]()
    ;(await takeTurn('write', 'box'))[Symbol.dispose]()
  })
})
