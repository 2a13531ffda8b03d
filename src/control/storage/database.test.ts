import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { openTestDatabase } from '#test/control/test-database.ts'
import { needsRoot } from '#test/needs-root.ts'
import { isDangling, isDuplicate, isOverdue, isUnreachable, openDatabase, type Transaction } from './database.ts'

suite('the database connections of control', () => {
  test('a transaction is committed completely or not at all', async () => {
    await using opened = await openTestDatabase('empty')
    const { database } = opened
    await database.sql`create table things (name text primary key)`
    await assert.rejects(
      database.transaction(async (transaction) => {
        await transaction`insert into things values ('kept?')`
        throw new Error('no')
      }),
      /no/,
    )
    assert.deepEqual([...(await database.sql`select name from things`)], [])
  })

  test('a transaction has its own connection, even if 100 queries waited for a connection before it', async () => {
    await using opened = await openTestDatabase('empty')
    const database = openDatabase(opened.url, { max: 2 })
    const { sql } = database
    const ask = () => sql`select 1`.execute()
    await Promise.all([ask(), ask()])
    for (let before = 90; before <= 110; before++) {
      const busy = [sql`select pg_sleep(0.05)`.execute(), sql`select pg_sleep(0.05)`.execute()]
      const waiting = Array.from({ length: 2 * before }, ask)
      const transactions = ['one', 'other'].map((name) =>
        database.transaction(async (transaction) => {
          await transaction.unsafe(`set local application_name = '${name}'`)
          const [row] = await transaction`select current_setting('application_name') as name`
          assert.equal(row?.['name'], name)
        }),
      )
      await Promise.all([...busy, ...waiting, ...transactions])
    }
    await database.close()
  })

  test('`isDuplicate`, `isDangling` and similar functions recognize database errors by their SQLSTATE', async () => {
    await using opened = await openTestDatabase('empty')
    const { sql } = opened.database
    await sql`create table owners (id integer primary key)`
    await sql`create table things (id integer primary key references owners)`
    await sql`insert into owners values (1)`
    await assert.rejects(sql`insert into owners values (1)`, (error) => isDuplicate(error) && !isDangling(error))
    await assert.rejects(sql`insert into things values (2)`, (error) => isDangling(error) && !isDuplicate(error))
    const hurried = (limit: string, work: (transaction: Transaction) => Promise<unknown>) =>
      opened.database.transaction(async (transaction) => {
        await transaction.unsafe(`set local ${limit} = '20ms'`)
        await work(transaction)
      })
    await assert.rejects(
      hurried('statement_timeout', (transaction) => transaction`select pg_sleep(10)`),
      isOverdue,
    )
    const waiting = opened.database.transaction(async (transaction) => {
      await transaction`select from owners for update`
      const other = hurried('lock_timeout', (late) => late`select from owners for update`)
      await assert.rejects(other, (error) => isOverdue(error) && !isUnreachable(error))
    })
    await waiting
    const away = openDatabase('postgresql://nobody@127.0.0.1:1/nothing')
    await assert.rejects(away.sql`select 1`, (error) => isUnreachable(error))
    await away.close()
  })

  test('a Unix socket that control has no permission to open is reported as an unreachable database', {
    skip: needsRoot,
  }, async () => {
    const directory = await mkdtemp(join(tmpdir(), 'alcove-socket-'))
    await chmod(directory, 0o711)
    const path = join(directory, '.s.PGSQL.5432')
    const server = createServer().listen(path)
    await once(server, 'listening')
    await chmod(path, 0o700)
    const database = openDatabase(`postgresql://nobody@localhost/nothing?host=${encodeURIComponent(directory)}`, {
      max: 1,
    })
    process.seteuid?.(65_534)
    try {
      await assert.rejects(database.sql`select 1`, (error) => isUnreachable(error) && /EACCES/.test(String(error)))
    } finally {
      process.seteuid?.(0)
      await database.close()
      server.close()
      await rm(directory, { recursive: true })
    }
  })

  test('the database returns a count as a number, does not rename JSON keys, and stops queries after 15 s', async () => {
    await using opened = await openTestDatabase('empty')
    const { sql } = opened.database
    const [row] = await sql`select count(*) as how_many, '{"some_key":{"other_key":1}}'::jsonb as some_json`
    assert.deepEqual({ ...row }, { how_many: 1, some_json: { some_key: { other_key: 1 } } })
    const [limit] = await sql`select current_setting('statement_timeout') as timeout`
    assert.equal(limit?.['timeout'], '15s')
  })

  test('a listener of the database gets notifications of other processes, even after its connection was cut', async () => {
    await using opened = await openTestDatabase('empty')
    const { database } = opened
    const heard = new EventEmitter()
    await database.listen(
      'news',
      (payload) => heard.emit('message', payload),
      () => heard.emit('gap'),
    )
    const first = once(heard, 'message')
    await database.sql`select pg_notify('news', 'one')`
    assert.deepEqual(await first, ['one'])

    const gap = once(heard, 'gap')
    await database.sql`
      select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'alcove-control-listener'
      and datname = current_database()`
    await gap
    const second = once(heard, 'message')
    await database.sql`select pg_notify('news', 'two')`
    assert.deepEqual(await second, ['two'])
  })
})
