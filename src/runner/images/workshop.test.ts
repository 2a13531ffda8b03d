import assert from 'node:assert/strict'
import { existsSync, statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { runJob } from './workshop.ts'

const cannotRun = needsRoot || (existsSync('/usr/bin/crun') ? false : 'needs crun')

suite('confined jobs of the runner', { skip: cannotRun }, () => {
  test('root in a confined job is an unprivileged user of the host, and the host’s /dev/null keeps its owner', async () => {
    const scratch = await mkdtemp(join(tmpdir(), 'alcove-workshop-'))
    const before = statSync('/dev/null').uid
    try {
      const { exitCode, stdout, stderr } = await runJob(scratch, {
        argv: ['sh', '-c', 'cat; id -u; cat /proc/self/uid_map'],
        views: [],
        ids: { base: before + 61_017, count: 1 },
        network: 'none',
        largestFileBytes: 1024,
        timeoutMs: 30_000,
      })
      assert.equal(exitCode, 0, stderr)
      assert.deepEqual(stdout.toString().trim().split(/\s+/), ['0', '0', String(before + 61_017), '1'])
      assert.equal(statSync('/dev/null').uid, before)
    } finally {
      await rm(scratch, { recursive: true, force: true })
    }
  })
})
