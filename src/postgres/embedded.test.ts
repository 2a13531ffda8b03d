import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import postgres from 'postgres'
import { silentLog } from '#src/kit/log.ts'
import { isRoot, needsRoot } from '#test/needs-root.ts'
import { type Postgres, startPostgres } from './embedded.ts'
import { endPrevious, listServerProcesses, socketPath } from './previous.ts'
import { connectionFrom } from './url.ts'

const uid = 64_201
const base = await mkdtemp(join(tmpdir(), 'alcove-postgres-'))
await chmod(base, 0o711)
const directory = join(base, 'data')
const cluster = join(directory, 'cluster')
const socketDirectory = join(base, 'socket')
const start = () => startPostgres({ directory, socketDirectory, uid, gid: uid, log: silentLog() })

const ask = async <Row>(url: string, question: string): Promise<Row[]> => {
  const { url: address, connection } = connectionFrom(url)
  const sql = postgres(address, { ...connection, max: 1, onnotice: () => {} })
  return (await sql.unsafe(question).finally(() => sql.end({ timeout: 1 }))) as unknown as Row[]
}

suite('embedded PostgreSQL', { concurrency: false }, () => {
  let running: Postgres | undefined
  after(async () => {
    await running?.stop()
    await endPrevious(cluster, socketDirectory, silentLog())
    await rm(base, { recursive: true, force: true })
  })

  test('the first start of PostgreSQL makes a database that syncs to disk and listens on no network', async () => {
    running = await start()
    const [row] = await ask<Record<string, string>>(
      running.url,
      `select current_setting('fsync') as fsync, current_setting('listen_addresses') as listen,
              current_setting('server_encoding') as encoding, current_setting('data_checksums') as checksums`,
    )
    assert.deepEqual({ ...row }, { fsync: 'on', listen: '', encoding: 'UTF8', checksums: 'on' })
  })

  test('PostgreSQL runs as the given uid, and only that uid owns its files', {
    skip: needsRoot,
  }, async () => {
    assert.ok(running)
    for (const path of [`/proc/${running.pid}`, cluster, join(cluster, 'PG_VERSION')]) {
      assert.equal((await stat(path)).uid, uid, path)
    }
    const { mode, uid: owner } = await stat(join(directory, 'password'))
    assert.deepEqual([mode & 0o777, owner], [0o600, 0])
  })

  test('PostgreSQL refuses a wrong password even on its unix socket', async () => {
    assert.ok(running)
    const wrong = new URL(running.url)
    wrong.password = 'wrong'
    await assert.rejects(ask(wrong.href, 'select 1'), { code: '28P01' })
  })

  test('`stop` ends PostgreSQL and may be called twice; the next start has all committed data', async () => {
    assert.ok(running)
    await ask(running.url, 'create table kept (word text); insert into kept values ($$here$$)')
    await Promise.all([running.stop(), running.stop()])
    await running.stop()
    assert.deepEqual(await running.exited, { code: 0, signal: null })
    running = await start()
    assert.deepEqual(await ask(running.url, 'select word from kept').then((rows) => rows.map((row) => ({ ...row! }))), [
      { word: 'here' },
    ])
  })

  test('after kill -9, PostgreSQL starts although its old pid file is there, and has all committed data', async () => {
    assert.ok(running)
    await ask(running.url, 'insert into kept values ($$again$$)')
    process.kill(running.pid, 'SIGKILL')
    assert.equal((await running.exited).signal, 'SIGKILL')
    running = await start()
    const [row] = await ask<{ count: string }>(running.url, 'select count(*) from kept')
    assert.equal(row?.count, '2')
  })

  test('after kill -9, PostgreSQL starts even if another process of the same user now has its old pid', async () => {
    assert.ok(running)
    process.kill(running.pid, 'SIGKILL')
    await running.exited
    const other = spawn('sleep', ['1000'], isRoot ? { uid, gid: uid } : {})
    try {
      for (const note of [join(cluster, 'postmaster.pid'), `${socketPath(socketDirectory)}.lock`]) {
        const [, ...lines] = (await readFile(note, 'utf8')).split('\n')
        await writeFile(note, [other.pid, ...lines].join('\n'))
      }
      running = await start()
    } finally {
      other.kill('SIGKILL')
    }
  })

  test('if `up` was killed while its PostgreSQL ran, the next start ends that PostgreSQL first', async () => {
    assert.ok(running)
    await running.stop()
    const program = `import { startPostgres } from '#src/postgres/embedded.ts'
      import { silentLog } from '#src/kit/log.ts'
      const { pid } = await startPostgres({ ...${JSON.stringify({ directory, socketDirectory, uid, gid: uid })}, log: silentLog() })
      console.log(pid)
      setInterval(() => {}, 1000)`
    const supervisor = spawn(process.execPath, ['--input-type=module-typescript', '-e', program], {
      cwd: import.meta.dirname,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [line] = (await once(supervisor.stdout, 'data')) as [Buffer]
    const orphan = Number(line.toString())
    supervisor.kill('SIGKILL')
    await once(supervisor, 'exit')
    running = await start()
    assert.ok(!(await listServerProcesses(cluster)).includes(orphan))
    const [row] = await ask<{ count: string }>(running.url, 'select count(*) from kept')
    assert.equal(row?.count, '2')
  })

  test('PostgreSQL works in a directory whose parent directory its uid cannot open', { skip: needsRoot }, async () => {
    const closed = join(base, 'closed')
    await mkdir(closed, { mode: 0o700 })
    const places = { directory: join(closed, 'data'), socketDirectory: join(closed, 'socket') }
    const server = await startPostgres({ ...places, uid, gid: uid, log: silentLog() })
    try {
      assert.deepEqual((await ask<{ one: number }>(server.url, 'select 1 as one'))[0], { one: 1 })
    } finally {
      await server.stop()
    }
  })
})
