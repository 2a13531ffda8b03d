import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { MemoryKillsHere } from '#src/wire/gate-link.ts'
import { MemoryKillQuestions } from './memory-kills.ts'

const killsOf = (count: number): MemoryKillsHere => ({ count, spans: [] })

/** Starts a simulated runner. Each question waits until the test answers the question, or until the question's timeout. */
const startRunner = () => {
  const questions: { sandboxId: string; answer: (kills: MemoryKillsHere) => void }[] = []
  const ask = (request: unknown, _body: unknown, signal?: AbortSignal) =>
    new Promise((resolve, reject) => {
      questions.push({ sandboxId: (request as { sandboxId: string }).sandboxId, answer: resolve })
      signal?.addEventListener('abort', () => reject(signal.reason))
    })
  return { questions, link: { ask } as unknown as ConstructorParameters<typeof MemoryKillQuestions>[0] }
}

suite('asking the runner how many processes were killed for lack of memory (memory kills)', () => {
  test('callers that ask about kills for lack of memory while a question is pending share the next question', async () => {
    const { questions, link } = startRunner()
    const kills = new MemoryKillQuestions(link)
    const first = kills.find('box')
    const later = [kills.find('box'), kills.find('box'), kills.find('box')]
    assert.equal(questions.length, 1)
    questions[0]!.answer(killsOf(1))
    assert.deepEqual(await first, killsOf(1))
    assert.equal(questions.length, 2)
    const last = kills.find('box')
    questions[1]!.answer(killsOf(2))
    assert.deepEqual(await Promise.all(later), [killsOf(2), killsOf(2), killsOf(2)])
    assert.equal(questions.length, 3)
    questions[2]!.answer(killsOf(3))
    assert.deepEqual(await last, killsOf(3))
  })

  test('the gate asks at the same time for two sandboxes whether processes were killed for lack of memory', () => {
    const { questions, link } = startRunner()
    const kills = new MemoryKillQuestions(link)
    void kills.find('one')
    void kills.find('other')
    assert.deepEqual(
      questions.map(({ sandboxId }) => sandboxId),
      ['one', 'other'],
    )
  })

  test('if the runner does not answer a question about memory kills, each caller of `find` waits one timeout', async () => {
    const { questions, link } = startRunner()
    const kills = new MemoryKillQuestions(link, 20)
    // Node ends the process of the test if only the timer of a question is left. This interval prevents that.
    using _ = setInterval(() => {}, 1000)
    const waiting = [kills.find('box'), kills.find('box')]
    for (const { status } of await Promise.allSettled(waiting)) assert.equal(status, 'rejected')
    const again = kills.find('box')
    questions.at(-1)!.answer(killsOf(4))
    assert.deepEqual(await again, killsOf(4))
  })
})
