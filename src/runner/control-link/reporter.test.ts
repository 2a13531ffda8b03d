import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { assigned } from '#src/runner/testing/simulated-host.ts'
import type { Report } from '#src/wire/runner-link.ts'
import type { SandboxState } from '#src/wire/sandbox-state.ts'
import type { Delivery } from './control-client.ts'
import { Reporter } from './reporter.ts'

const started = (sandboxId: string, generation: number): Report => ({ sandboxId, generation, state: 'started' })
const stopped = (sandboxId: string, generation: number): Report => ({ sandboxId, generation, state: 'stopped' })
const short = ({ sandboxId, generation, state }: Report) => `${sandboxId} ${generation} ${state}`
const listed = (sandboxId: string, generation: number, state: SandboxState) => ({
  assignment: assigned(sandboxId, generation),
  state,
})

const startReporter = () => {
  const sent: string[] = []
  const told: string[] = []
  const side = {
    isLinked: true,
    now: 1000,
    tell: async (_report: Report): Promise<Delivery> => 'taken',
  }
  const reporter = new Reporter({
    send: (report) => {
      if (side.isLinked) sent.push(short(report))
      return side.isLinked
    },
    tell: (report) => {
      told.push(short(report))
      return side.tell(report)
    },
    log: silentLog(),
    now: () => side.now,
    retryMs: { first: 1, longest: 2 },
  })
  const pass = async () => {
    for (let i = 0; i < 5; i++) await new Promise(setImmediate)
  }
  return { reporter, sent, told, side, pass, [Symbol.dispose]: () => reporter[Symbol.dispose]() }
}

suite('reports from the runner to control', () => {
  test('a runner sends reports over the link while the link is connected, otherwise over HTTP', async () => {
    using parts = startReporter()
    const { reporter, sent, told, side } = parts
    reporter.say(started('a', 1))
    side.isLinked = false
    reporter.say(started('b', 1))
    assert.deepEqual([sent, told], [['a 1 started'], ['b 1 started']])
  })

  test('if the link is lost, the newest report of each sandbox is sent again over HTTP', async () => {
    using parts = startReporter()
    const { reporter, told } = parts
    reporter.say(started('a', 1))
    reporter.say(stopped('a', 2))
    reporter.linkLost()
    assert.deepEqual(told, ['a 2 stopped'])
  })

  test('a report is not sent again if control’s list shows the reported state or a newer generation', async () => {
    using parts = startReporter()
    const { reporter, told, side, pass } = parts
    reporter.say(started('same', 1))
    reporter.say(started('newer', 1))
    reporter.say(started('gone', 1))
    side.now += 1
    reporter.confirm([listed('same', 1, 'started'), listed('newer', 2, 'stopping')], side.now)
    reporter.linkLost()
    await pass()
    assert.deepEqual(told, [])
  })

  test('if control’s list shows another state than a report, that report is sent again once, over HTTP', async () => {
    using parts = startReporter()
    const { reporter, told, side, pass } = parts
    reporter.say(started('a', 1))
    side.now += 1
    reporter.confirm([listed('a', 1, 'starting')], side.now)
    await pass()
    reporter.confirm([listed('a', 1, 'starting')], side.now)
    await pass()
    assert.deepEqual(told, ['a 1 started'])
  })

  test('if control’s list of sandboxes has a malformed entry, the runner reports that sandbox over HTTP', async () => {
    using parts = startReporter()
    const { reporter, told, side, pass } = parts
    reporter.say(started('a', 1))
    side.now += 1
    reporter.confirm([{ sandboxId: 'a' }], side.now)
    await pass()
    assert.deepEqual(told, ['a 1 started'])
  })

  test('a list that was requested before a report was sent does not make the reporter send the report again', async () => {
    using parts = startReporter()
    const { reporter, told, side } = parts
    reporter.say(started('a', 1))
    reporter.confirm([listed('a', 1, 'starting')], side.now)
    assert.deepEqual(told, [])
    reporter.linkLost()
    assert.deepEqual(told, ['a 1 started'])
  })

  test('a report that could not be sent is sent again until control accepts the report', async () => {
    using parts = startReporter()
    const { reporter, told, side } = parts
    side.isLinked = false
    const heard = Promise.withResolvers<void>()
    side.tell = async () => {
      if (told.length < 4) throw new Error('control is away')
      heard.resolve()
      return 'taken'
    }
    reporter.say(started('a', 1))
    await heard.promise
    assert.deepEqual(told, Array(4).fill('a 1 started'))
    reporter.linkLost()
    assert.equal(told.length, 4)
  })

  test('a closed `Reporter` does not repeat a report that could not be sent', async () => {
    using parts = startReporter()
    const { reporter, told, side } = parts
    side.isLinked = false
    const sending = Promise.withResolvers<Delivery>()
    side.tell = () => sending.promise
    reporter.say(started('a', 1))
    reporter[Symbol.dispose]()
    sending.reject(new Error('control is away'))
    // A reporter that is not closed would send the report again after 1 ms.
    await new Promise((resolve) => setTimeout(resolve, 20))
    assert.deepEqual(told, ['a 1 started'])
  })

  test('a report that control refuses is not sent again', async () => {
    using parts = startReporter()
    const { reporter, told, side, pass } = parts
    side.isLinked = false
    side.tell = async () => 'refused'
    reporter.say(started('a', 1))
    await pass()
    reporter.linkLost()
    assert.deepEqual(told, ['a 1 started'])
  })

  test('a report about a sandbox is sent only after the report before it about that sandbox has arrived', async () => {
    using parts = startReporter()
    const { reporter, told, sent, side, pass } = parts
    const arrived = Promise.withResolvers<Delivery>()
    side.isLinked = false
    side.tell = () => arrived.promise
    reporter.say(started('a', 1))
    side.isLinked = true
    reporter.say(stopped('a', 1))
    assert.deepEqual([told, sent], [['a 1 started'], []])
    arrived.resolve('taken')
    await pass()
    assert.deepEqual(told, ['a 1 started', 'a 1 stopped'])
  })
})
