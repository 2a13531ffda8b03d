// A sandbox can fill the host's memory with kernel objects that are neither limited nor counted. The runner must notice such a
// sandbox and end no other sandbox. The tests measure the whole host's memory, so no other test may run meanwhile.
// kernel-objects.test.ts tests the kernel objects that are limited or counted.
import assert from 'node:assert/strict'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { identityOf } from '#src/kit/process-identity.ts'
import { readLayout } from '#src/runner/cgroup/layout.ts'
import { KernelMemoryWatch } from '#src/runner/kernel-memory/watch.ts'
import { TestHost } from '#src/runner/testing/test-host.ts'
import type { Cause } from '#src/wire/runner-link.ts'
import { buildAttacks, slowAttacks, watchedAttacks } from '#test/kernel-memory/attacks.ts'
import { needsRoot } from '#test/needs-root.ts'

suite('sandboxes that fill the kernel’s memory', { skip: needsRoot }, () => {
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

  suite('the runner’s `KernelMemoryWatch`', () => {
    for (const { name, object } of watchedAttacks)
      test(`the runner ends a sandbox that fills kernel memory with ${object}; other busy sandboxes keep running`, {
        timeout: 60_000,
      }, async () => {
        const attacker = await started()
        const neighbours = [await started(), await started()]
        const ended = new Promise<[string, Cause]>((resolve) => box.host.onExit((...end) => resolve(end)))
        // The two other sandboxes are busy but do not attack. They start processes and write files, which also takes kernel memory.
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

  suite('`KernelMemoryWatch`, which ends sandboxes that slowly fill the kernel’s memory', () => {
    for (const { name, object } of slowAttacks)
      test(`among three busy sandboxes, the runner finds the one that fills kernel memory with ${object}`, {
        timeout: 120_000,
      }, async () => {
        const attacker = await started()
        const neighbours = [await started(), await started()]
        // The two other sandboxes are busy but do not attack. They start processes, write files and open sockets.
        const busy = [
          'n=0; while :; do cat /proc/self/maps > /tmp/b$((n % 500)); /bin/true; n=$((n+1)); done',
          'while :; do dd if=/dev/zero of=/tmp/pages bs=1M count=30 2> /dev/null; attacks time-waits 0.3 & sleep 1; kill $!; done',
        ]
        for (const [index, neighbour] of neighbours.entries())
          await box.run(neighbour, `(${busy[index]}) > /dev/null 2>&1 &`)
        void box.run(attacker, `attacks ${name} 120`).catch(() => {})
        const found = Promise.withResolvers<string>()
        // A slow attack would not reach the runner's limits in time, so the test has its own `KernelMemoryWatch` with lower limits.
        const watch = new KernelMemoryWatch({
          layout: readLayout(),
          bounds: { grownBytes: 6 * 1024 ** 2, pauseMs: 200, runMs: 400 },
          holdStill: async (sandboxId, release) => {
            const cgroup = box.cgroupOf(sandboxId)
            await cgroup.freeze()
            if (release.aborted) await cgroup.thaw()
            release.addEventListener('abort', () => void cgroup.thaw(), { once: true })
            return true
          },
          onTooMuch: (sandboxId) => found.resolve(sandboxId),
          log: silentLog(),
        })
        try {
          for (const sandboxId of [...neighbours, attacker]) {
            watch.add(sandboxId, { init: identityOf(box.pidOf(sandboxId)), cgroup: box.cgroupOf(sandboxId) })
          }
          assert.equal(await found.promise, attacker, `not one of ${neighbours}`)
        } finally {
          watch.close()
          for (const sandboxId of [attacker, ...neighbours]) await box.host.destroy(sandboxId)
        }
      })
  })
})
