import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { suite, test } from 'node:test'
import type { Lanes } from './test-lanes.ts'
import { planOf } from './test-plan.ts'

const all = globSync('{src,client/src,agent,native,bin,scripts,bench,test}/**/*.test.ts').sort()
const plan = planOf(all, { processors: 2, sharesProcesses: true })
const inServers = (name: string) => `test/sandboxes/${name}.test.ts`

/** Lists the test files of a phase. A queue of files that several lanes (workers) share is listed once. */
const filesOf = (lanes: Lanes): string[] => [...new Set(lanes.flat())].flat(2)
const phaseOf = (file: string): number => plan.findIndex((lanes) => filesOf(lanes).includes(file))

suite('the plan of a test run', () => {
  test('the plan of a test run contains every test file once', () => {
    assert.deepEqual(plan.flatMap(filesOf).sort(), all)
    const few = [inServers('busy'), 'src/kit/budget.test.ts']
    assert.deepEqual(planOf(few, { processors: 1, sharesProcesses: true }).flatMap(filesOf).sort(), few.toReversed())
  })

  test('a test file that measures the host’s memory or checks a duration runs alone', () => {
    const [, alone = []] = plan
    assert.equal(alone.length, 1)
    assert.deepEqual(filesOf(alone), [inServers('busy'), inServers('kernel-memory')])
  })

  test('two test files that measure a program of their shared server never run at the same time', () => {
    const [first] = plan
    const lanes = first.filter((queues) => queues.some((queue) => queue.flat().includes(inServers('files'))))
    assert.equal(lanes.length, 1)
    assert.ok(lanes[0]!.some((queue) => queue.flat().includes(inServers('bad-input'))))
  })

  test('test files in `test/`, which take minutes, start before test files in `src/control`', () => {
    const queue = plan[0].flat().find((queue) => queue.flat().includes('test/hosts/join.test.ts'))!
    const places = queue.map(([file]) => file?.startsWith('test/') === true)
    assert.ok(places.includes(false))
    assert.ok(places.lastIndexOf(true) < places.indexOf(false))
  })

  test('test files for the small default image run before test files that wait for the real default image', () => {
    const queue = plan[0]
      .flat()
      .find((queue) => queue.flat().includes(inServers('warm')))!
      .flat()
    const places = ['up', 'domains', 'faults'].map((name) => queue.indexOf(inServers(name)))
    assert.ok(Math.max(...places) < queue.indexOf(inServers('warm')), String(places))
    assert.equal(phaseOf(inServers('warm')), 0)
  })
})
