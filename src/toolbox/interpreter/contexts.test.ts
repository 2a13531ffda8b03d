import assert from 'node:assert/strict'
import { mkdirSync, rmdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { startToolbox } from '../testing/toolbox.ts'
import { contextPath, newContext, printed, start } from './testing/run.ts'

suite('POST /process/interpreter/context, GET /process/interpreter/context, DELETE /process/interpreter/context/{contextId}', () => {
  test('interpreter contexts can be made, listed and deleted; the default context is not listed', async () => {
    await using box = await startToolbox()
    assert.deepEqual(await box.get(contextPath), { status: 200, body: { contexts: [] } })
    const made = await box.post(contextPath, {})
    const { id, createdAt, ...rest } = made.body
    assert.equal(made.status, 200)
    assert.match(id, /^[0-9a-f-]{36}$/)
    assert.ok(Number.isFinite(Date.parse(createdAt)))
    assert.deepEqual(rest, { cwd: homedir(), active: true, language: 'python' })
    await printed(box, 'pass')
    const other = (await box.post(contextPath, { cwd: '/tmp', language: 'python' })).body
    assert.equal(other.cwd, '/tmp')
    assert.deepEqual((await box.get(contextPath)).body, { contexts: [made.body, other] })
    assert.equal((await box.delete(`${contextPath}/${id}`)).status, 200)
    assert.deepEqual((await box.get(contextPath)).body, { contexts: [other] })
    assert.equal((await box.delete(`${contextPath}/${id}`)).status, 404)
    assert.equal((await start(box, 'pass', { contextId: id }).outcome).code, 1008)
  })

  test('interpreter context calls answer 400 for a wrong language, and for deleting the default context', async () => {
    await using box = await startToolbox()
    for (const body of [{ language: 'r' }, { cwd: '/nowhere' }, { cwd: 'nowhere' }, { cwd: 7 }, { cwd: 'a\0' }, []]) {
      assert.equal((await box.post(contextPath, body)).status, 400, JSON.stringify(body))
    }
    assert.equal((await box.delete(`${contextPath}/default`)).status, 400)
    assert.equal((await box.delete(`${contextPath}/${'x'.repeat(500)}`)).status, 404)
    assert.deepEqual(await box.native.agent.jobs.list(), [])
  })

  test('each interpreter context has its own directory, variables and modules', async () => {
    await using box = await startToolbox()
    const [one, other] = [await newContext(box, { cwd: '/tmp' }), await newContext(box)]
    assert.equal(await printed(box, 'import os; x = 1; print(os.getcwd())', { contextId: one }), '/tmp\n')
    assert.equal(
      await printed(box, 'import os; print("x" in dir(), os.getcwd())', { contextId: other }),
      `False ${homedir()}\n`,
    )
    assert.equal(await printed(box, 'print("x" in dir(), "os" in dir())'), 'False False\n')
    assert.equal(await printed(box, 'print(x)', { contextId: one }), '1\n')
  })

  test('POST /process/interpreter/context answers 429 if the sandbox has 64 contexts', async () => {
    await using box = await startToolbox()
    const ids: string[] = []
    for (let i = 0; i < 64; i++) ids.push(await newContext(box))
    assert.equal((await box.post(contextPath, {})).status, 429)
    await box.delete(`${contextPath}/${ids[0]}`)
    assert.equal((await box.post(contextPath, {})).status, 200)
  })

  test('POST /process/interpreter/context answers 422 if the image has no python3', async () => {
    await using box = await startToolbox()
    const nothing = join(box.directory, 'nothing')
    mkdirSync(nothing)
    box.assignment.env['PATH'] = nothing
    const { status, body } = await box.post(contextPath, { cwd: '/' })
    assert.deepEqual([status, body.message], [422, 'There is no python3 in this sandbox.'])
    const { code, messages, reason } = await start(box, 'print(1)').outcome
    assert.deepEqual([code, reason], [1011, 'There is no python3 in this sandbox.'])
    assert.deepEqual(messages[0], { type: 'error', name: 'InterpreterUnavailable', value: reason, traceback: '' })
  })
  test('an interpreter context whose Python cannot restart stays in the list; a later call can restart it', async () => {
    await using box = await startToolbox()
    const cwd = join(box.directory, 'cwd')
    mkdirSync(cwd)
    const id = await newContext(box, { cwd })
    for (const round of [1, 2]) {
      assert.equal((await start(box, 'import os; os._exit(1)', { contextId: id }).outcome).code, 1011)
      rmdirSync(cwd)
      for (const _ of [1, 2]) assert.equal((await start(box, 'pass', { contextId: id }).outcome).code, 1011)
      const { contexts } = (await box.get(contextPath)).body
      assert.deepEqual(
        contexts.map(({ active, ...rest }: Record<string, unknown>) => [active, rest['id'], rest['cwd']]),
        [[false, id, cwd]],
      )
      mkdirSync(cwd)
      assert.equal(await printed(box, `print(${round})`, { contextId: id }), `${round}\n`)
      assert.equal((await box.native.agent.jobs.list()).length, 1)
    }
    assert.equal((await box.delete(`${contextPath}/${id}`)).status, 200)
    assert.deepEqual(await box.native.agent.jobs.list(), [])
  })
})
