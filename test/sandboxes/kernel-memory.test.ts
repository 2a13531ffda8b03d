// What a sandbox can make in the kernel is charged to it, bounded, or noticed. Each attack runs for about a second in a real
// sandbox and is measured by the memory of the real host.
import assert from 'node:assert/strict'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { TestHost } from '#src/runner/testing/test-host.ts'
import type { Cause } from '#src/wire/runner-link.ts'
import { attacks, buildAttacks, holds, measureAttack, watchedAttacks } from '#test/kernel-memory/attacks.ts'
import { needsRoot } from '#test/needs-root.ts'

suite('the kernel’s memory', { skip: needsRoot }, () => {
  let box: TestHost
  before(async () => {
    box = await TestHost.start()
    const program = join(box.directory, 'small/bin/attacks')
    buildAttacks(program)
    chmodSync(program, 0o755)
  })
  after(async () => {
    await box?.[Symbol.asyncDispose]()
  })

  const started = async () => (await box.started({ memoryGiB: 1, cpu: 2, diskGiB: 2 })).sandboxId
  const insideOf = (sandboxId: string) => ({
    cgroup: box.cgroupOf(sandboxId),
    run: async (line: string) => (await box.run(sandboxId, line)).output,
  })

  suite('is charged or bounded', () => {
    let id: string
    before(async () => {
      id = await started()
    })
    for (const attack of attacks)
      test(`${attack.object}: ${typeof attack.verdict === 'string' ? attack.verdict : 'bounded'}`, async () => {
        const measured = await measureAttack(attack.name, 0.8, insideOf(id))
        // What others do on this host at the same moment is measured as well, so one more try.
        const again = holds(attack, measured) ? measured : await measureAttack(attack.name, 0.8, insideOf(id))
        assert.ok(holds(attack, again), JSON.stringify([measured, again]))
      })
    after(async () => {
      await box.host.destroy(id)
    })
  })

  suite('is watched', () => {
    for (const { name, object } of watchedAttacks)
      test(`${object}: the sandbox is ended, and its busy neighbours go on`, { timeout: 60_000 }, async () => {
        const attacker = await started()
        const neighbours = [await started(), await started()]
        const ended = new Promise<[string, Cause]>((resolve) => box.host.onExit((...end) => resolve(end)))
        // They make processes, files and pages, mostly in the kernel.
        const busy = 'n=0; while :; do cat /proc/self/maps > /tmp/b$((n % 50)); /bin/true; n=$((n+1)); done'
        for (const neighbour of neighbours) await box.run(neighbour, `(${busy}) > /dev/null 2>&1 &`)
        void box.run(attacker, `attacks ${name} 30`).catch(() => {})
        const [sandboxId, { detail }] = await ended
        assert.equal(sandboxId, attacker, `${detail}, of ${neighbours}`)
        assert.match(detail ?? '', /so it was ended\.$/)
        for (const neighbour of neighbours) {
          assert.equal((await box.run(neighbour, 'echo alive')).output, 'alive')
          await box.host.destroy(neighbour)
        }
        await box.host.destroy(attacker)
      })
  })
})
