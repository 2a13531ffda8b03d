import assert from 'node:assert/strict'
import { existsSync, statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { type Job, runJob } from './workshop.ts'

const cannotRun = needsRoot || (existsSync('/usr/bin/crun') ? false : 'needs crun')

suite('helper programs that the runner starts in namespaces of their own', { skip: cannotRun }, () => {
  test('root in the namespace of a job on the host has no rights outside, and does not own /dev/null', async () => {
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
        tookTooLong: () => new Error('took too long'),
      })
      assert.equal(exitCode, 0, stderr)
      assert.deepEqual(stdout.toString().trim().split(/\s+/), ['0', '0', String(before + 61_017), '1'])
      assert.equal(statSync('/dev/null').uid, before)
    } finally {
      await rm(scratch, { recursive: true, force: true })
    }
  })

  test('if the runner ends a job on the host, such as a download, the job’s error says why', async () => {
    const scratch = await mkdtemp(join(tmpdir(), 'alcove-workshop-'))
    const sleep = (changes: Partial<Job>) =>
      runJob(scratch, {
        argv: ['sh', '-c', 'echo begun >&2; exec sleep 600'],
        views: [],
        ids: { base: statSync('/dev/null').uid + 61_017, count: 1 },
        network: 'none',
        largestFileBytes: 1024,
        timeoutMs: 60_000,
        tookTooLong: (stderr) => new Error(`late after ${stderr.trim()}`),
        ...changes,
      })
    const watch = async () => {
      throw new Error('watched')
    }
    try {
      await assert.rejects(sleep({ timeoutMs: 500 }), { message: /^late after/ })
      await assert.rejects(sleep({ watch }), { message: 'watched' })
      await assert.rejects(sleep({ signal: AbortSignal.abort(new Error('cancelled')) }), { message: 'cancelled' })
    } finally {
      await rm(scratch, { recursive: true, force: true })
    }
  })
})
