// Tests hostile programs in place of git. The sandbox provides the git program, so it may be any program and print anything.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { GitRoom, refusal } from './testing/git-room.ts'

/** Returns a fake git that prints a record again and again, 15 MiB in total. The gate reads up to 16 MiB. */
const prints = (record: string) =>
  `#!/bin/sh\nyes '${record}' | head -c ${15 * 1024 * 1024} | tr '\\n' '${record === '' ? '\\n' : '\\0'}'\n`

suite('a git program that prints a million records', () => {
  for (const [path, script] of [
    ['/status', prints('?')],
    ['/branches', prints('')],
    ['/remotes', prints('remote.a.url')],
    ['/history', `#!/bin/sh\nhead -c ${15 * 1024 * 1024} /dev/zero\n`],
  ] as const) {
    test(`${path} answers 422 if git prints a million records, and the gate answers the next calls`, async () => {
      const programs = mkdtempSync(join(tmpdir(), 'alcove-git-none-'))
      try {
        writeFileSync(join(programs, 'git'), script, { mode: 0o755 })
        await using room = await GitRoom.start({ PATH: `${programs}:/usr/bin:/bin` })
        mkdirSync(join(room.home, 'work'))
        assert.deepEqual(refusal(await room.get(path, { path: join(room.home, 'work') })), [
          422,
          'UNPROCESSABLE_ENTITY',
        ])
      } finally {
        rmSync(programs, { recursive: true })
      }
    })
  }
})
