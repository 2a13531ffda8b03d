// Nearly every kind of kernel object that a sandbox can create is limited in number, or counts as the sandbox's memory. Each test
// creates objects of one kind for about a second, and measures the host's memory. kernel-memory.test.ts tests the few other kinds,
// for which the runner has its `KernelMemoryWatch`.
import assert from 'node:assert/strict'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { TestHost } from '#src/runner/testing/test-host.ts'
import { attacks, buildAttacks, holds, type Measured, measureAttack } from '#test/kernel-memory/attacks.ts'
import { needsRoot } from '#test/needs-root.ts'

/**
 * Maximum number of measurements of an attack. One failed measurement proves nothing, because another program may have made kernel
 * memory grow.
 */
const mostMeasurements = 3

suite('limits on the kernel memory that a sandbox can fill', { skip: needsRoot }, () => {
  let box: TestHost
  let id: string
  before(async () => {
    box = await TestHost.start()
    const program = join(box.directory, 'small/bin/attacks')
    buildAttacks(program)
    chmodSync(program, 0o755)
    id = (await box.started({ memoryGiB: 1, cpu: 2, diskGiB: 2 })).sandboxId
  })
  after(async () => {
    await box?.[Symbol.asyncDispose]()
  })

  for (const attack of attacks)
    test(`a sandbox cannot fill the host’s kernel memory with ${attack.object}`, async () => {
      const inside = { cgroup: box.cgroupOf(id), run: async (line: string) => (await box.run(id, line)).output }
      const measured: Measured[] = []
      while (!measured.some((each) => holds(attack, each))) {
        assert.ok(measured.length < mostMeasurements, JSON.stringify(measured))
        measured.push(await measureAttack(attack.name, 0.8, inside))
      }
    })
})
