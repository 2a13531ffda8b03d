// Tests that a delete of an organization is complete or has no effect, even if control is killed in the middle.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { startControlProcess } from '#test/control/control-process.ts'
import type { TestControl } from '#test/control/harness.ts'
import { keys, organizations } from '#test/control/people.ts'
import { connectRunner } from '#test/control/simulated-runner.ts'
import { openTestDatabase } from '#test/control/test-database.ts'

/**
 * Sends a request to the control process at `base`. Returns the status and the parsed body, as `app.as(…)` does in
 * other tests.
 */
const call = async (base: string, token: string, method: string, path: string, body?: object) => {
  const reply = await fetch(`${base}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  const text = await reply.text()
  return { status: reply.status, body: text === '' ? undefined : JSON.parse(text) }
}

/** Returns what a simulated runner needs to connect to a control process other than the test's own. */
const remote = (base: string) =>
  ({
    listen: async () => base.replace(/\/api$/, ''),
    with: (token: string) => ({ get: (path: string) => call(base, token, 'GET', path) }),
  }) as unknown as Pick<TestControl, 'with' | 'listen'>

const until = async (isSo: () => Promise<boolean>, what: string) => {
  for (const end = Date.now() + 30_000; !(await isSo()); await pause(50)) assert.ok(Date.now() < end, what)
}

suite('DELETE /organizations/{organizationId}, and control is killed', () => {
  for (const milliseconds of [5, 40]) {
    test(`if control is killed ${milliseconds} ms into an organization’s delete, all or nothing is deleted`, async () => {
      await using opened = await openTestDatabase()
      await using before = await startControlProcess(opened.url)
      await using first = await connectRunner(remote(before.base))
      for (const name of ['one', 'two', 'three']) {
        assert.equal((await call(before.base, keys.member, 'POST', '/sandbox', { name })).status, 200)
      }
      const path = `/organizations/${organizations.ours}`
      const asked = call(before.base, keys.owner, 'DELETE', path).catch(() => undefined)
      await pause(milliseconds)
      await before.kill()
      await asked
      await first.cut()

      await using after = await startControlProcess(opened.url)
      await using runner = await connectRunner(remote(after.base))
      const { status } = await call(after.base, keys.owner, 'DELETE', path)
      // 204: the kill undid the first delete. 401: the first delete was committed, and had deleted the key of this call.
      assert.ok(status === 204 || status === 401, String(status))
      const left = () => opened.database.sql`select 1 from sandboxes where organization_id = ${organizations.ours}`
      await until(async () => (await left()).length === 0, 'their rows are still there')
      const told = [...first.asked, ...runner.asked].filter(({ target }) => target === 'destroyed')
      assert.equal(new Set(told.map(({ sandboxId }) => sandboxId)).size, 3)
    })
  }
})
