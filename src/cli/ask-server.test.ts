// If a command cannot reach the server of a data directory, its message must say why. These tests check that message.
import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { identityOf, type ProcessIdentity } from '#src/kit/process-identity.ts'
import { Complaint } from '#src/up/complaint.ts'
import { prepareDataDirectory } from '#src/up/data-directory.ts'
import { writeUpState } from '#src/up/state-file.ts'
import { askServer } from './ask-server.ts'
import { key } from './key.ts'
import { readStatus } from './status.ts'

/**
 * Calls `look` with the rights of the user `nobody`. This process is root again when `look` returns, or reaches its
 * first `await`.
 */
const asNobody = <Answer>(look: () => Answer): Answer => {
  process.seteuid?.(65534)
  try {
    return look()
  } finally {
    process.seteuid?.(0)
  }
}

const complains = (sentence: RegExp) => (error: unknown) => error instanceof Complaint && sentence.test(error.message)

suite('a command that cannot reach the server tells the reason', {
  skip: process.getuid?.() === 0 ? false : 'needs root',
}, () => {
  const scratch = mkdtempSync(join(tmpdir(), 'alcove-ask-'))
  chmodSync(scratch, 0o755)
  const data = prepareDataDirectory(join(scratch, 'data'))
  after(() => {
    rmSync(scratch, { recursive: true, force: true })
    rmSync(data.runtime, { recursive: true, force: true })
  })
  /** Writes the state file of an `up` process that runs. */
  const runs = (...names: string[]) => writeState(names, identityOf(process.pid))
  /** Writes the state file of an `up` process that has ended. */
  const ran = (...names: string[]) => writeState(names, { pid: 0, startTime: '' })
  /** No program listens on port 1, which the state file names. */
  const writeState = (names: string[], up: ProcessIdentity) =>
    writeUpState(data.stateFile, {
      ...up,
      ...{ host: '127.0.0.1', port: 1, url: 'http://127.0.0.1:1' },
      programs: names.map((name) => ({ name, ...up, state: 'ready', since: '', restarts: 0 })),
    })
  const ask = () => askServer(data.path, 'GET', '/runners')

  test('a user other than root is told that only root may read the admin key, not that the key is missing', async () => {
    runs('postgres', 'control')
    writeFileSync(join(data.secrets, 'admin.key'), 'dtn_key\n', { mode: 0o600 })
    const forRoot = complains(/^only root may read the key; use sudo$/)
    await assert.rejects(asNobody(ask), forRoot)
    assert.throws(() => asNobody(() => key(data.path)), forRoot)
    const { running, sandboxes, sandboxesUnknown } = await asNobody(() => readStatus(data.path))
    assert.deepEqual([running, sandboxes, sandboxesUnknown], [true, undefined, 'only root may read the key; use sudo'])
  })

  test('if a user may not read the data directory, an `alcove` command says that only root may read it', () => {
    chmodSync(scratch, 0o700)
    assert.throws(() => asNobody(() => key(data.path)), complains(/^only root can read .*; use sudo$/))
    chmodSync(scratch, 0o755)
  })

  test('in a joined runner’s data directory, a command that needs the admin key says which control has it', async () => {
    rmSync(join(data.secrets, 'admin.key'))
    runs('runner')
    const elsewhere = complains(/belongs to a runner.* http:\/\/127\.0\.0\.1:1/)
    await assert.rejects(ask, elsewhere)
    assert.throws(() => key(data.path), elsewhere)
    const { sandboxesUnknown } = await readStatus(data.path)
    assert.equal(sandboxesUnknown, 'this is a runner of the server at http://127.0.0.1:1')
  })

  test('in a stopped runner’s data directory, `alcove key` prints the address of the control that makes keys', () => {
    ran('runner')
    const elsewhere = complains(
      /belongs to a runner that joined http:\/\/127\.0\.0\.1:1; keys are made on that server$/,
    )
    assert.throws(() => key(data.path), elsewhere)
  })

  test('if the file with the admin key was removed, `alcove` commands name that file and call no server', async () => {
    runs('control')
    await assert.rejects(ask, complains(/^the key of the server, .*admin\.key, no longer exists$/))
    assert.throws(() => key(data.path), complains(/has no key yet/))
  })
})
