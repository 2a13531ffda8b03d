import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { openTestDatabase } from '#test/control/test-database.ts'
import { openDatabase, type Sql } from './database.ts'
import { isUnsynced } from './unsynced.ts'

const settingIn = async (sql: Sql) =>
  (await sql<{ is: string }[]>`select current_setting('synchronous_commit') as is`)[0]?.is

suite('statements that do not wait for the disk', () => {
  test('a transaction with an unsynced statement does not wait for the disk, but later transactions wait', async () => {
    await using opened = await openTestDatabase('empty')
    const database = openDatabase(opened.url, { max: 1 })
    try {
      await database.sql`set synchronous_commit to on`
      const [row, within] = await database.transaction(async (transaction) => [
        ...(await transaction`select 1 as found where ${isUnsynced(transaction)}`),
        await settingIn(transaction),
      ])
      assert.deepEqual([row, within, await settingIn(database.sql)], [{ found: 1 }, 'off', 'on'])
      await database.sql`select 1 where ${isUnsynced(database.sql)}`
      assert.equal(await settingIn(database.sql), 'on')
    } finally {
      await database.close()
    }
  })
})
