// Tests a server on an external PostgreSQL: the same platform without a database of its own.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startTestPostgres } from '#test/control/test-postgres.ts'
import { boxOf, createBox, until } from './box.ts'
import { platform, startUp } from './harness.ts'

suite('up with DATABASE_URL', () => {
  test('with DATABASE_URL sandboxes run, and are found in that database again after a restart', async () => {
    const database = await startTestPostgres()
    try {
      await using alcove = await platform({ own: true, image: 'small', env: { DATABASE_URL: database.url } })
      await assert.rejects(alcove.kill('postgres'), /postgres does not run/)
      const box = await createBox(alcove, { name: 'elsewhere' })
      assert.equal(await box.run('echo hello'), 'hello')
      await alcove.killAll()
      await alcove.start()
      const { status, body } = await alcove.api('GET', '/sandbox/elsewhere')
      assert.deepEqual([status, body['id'], body['state']], [200, box.id, 'started'])
      await until('it answers', async () => {
        const { status } = await boxOf(alcove, body).toolbox('POST', '/process/execute', { command: 'true' })
        return status === 200
      })

      // The runner must not start with a database that does not list its sandboxes. Control would eventually remove them as
      // unknown.
      const other = await startTestPostgres()
      try {
        await alcove.stop()
        const wrong = startUp(alcove.data, Number(new URL(alcove.url).port), { DATABASE_URL: other.url })
        await assert.rejects(wrong, /runner does not start: the sandboxes in .* are in another database/)
      } finally {
        await other.stop()
      }
      await alcove.start()
      assert.equal(await box.run('echo again'), 'again')
      await alcove.api('DELETE', `/sandbox/${box.id}`)
    } finally {
      await database.stop()
    }
  })
})
