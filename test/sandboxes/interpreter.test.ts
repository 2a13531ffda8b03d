// Tests the code interpreter in real sandboxes with the public SDK. An interpreter context is one Python process with variables of
// its own.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { type Daytona, DaytonaTimeoutError, type Sandbox } from '@daytona/sdk'
import { type Platform, platform } from './harness.ts'
import { connectTo } from './sdk-client.ts'

suite('the interpreter of the SDK', () => {
  let alcove: Platform
  let daytona: Daytona
  let sandbox: Sandbox
  before(async () => {
    alcove = await platform()
    daytona = connectTo(alcove)
    sandbox = await daytona.create()
  })
  after(async () => {
    await sandbox?.delete()
    await daytona?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  test('the SDK’s interpreter runs code, keeps variables between runs, and streams output', async () => {
    const pieces: string[] = []
    const { stdout, stderr, error } = await sandbox.codeInterpreter.runCode(
      'import sys, os\nx = 20\nprint("out", os.environ["A"])\nprint("err", file=sys.stderr)',
      { envs: { A: 'b' }, onStdout: ({ output }) => void pieces.push(output) },
    )
    assert.deepEqual([stdout, stderr, error, pieces.join('')], ['out b\n', 'err\n', undefined, 'out b\n'])
    const next = await sandbox.codeInterpreter.runCode('print(x + 1, os.environ.get("A"))')
    assert.equal(next.stdout, '21 None\n')
  })

  test('an exception of interpreted code is in the result, with the exception’s name, value and traceback', async () => {
    const { stdout, error } = await sandbox.codeInterpreter.runCode('print("before")\n1 / 0')
    assert.deepEqual([stdout, error?.name, error?.value], ['before\n', 'ZeroDivisionError', 'division by zero'])
    assert.match(error!.traceback!, /line 2, in <module>\n {4}1 \/ 0/)
  })

  test('two contexts of the interpreter share no variables, and contexts can be listed and deleted', async () => {
    const interpreter = sandbox.codeInterpreter
    const one = await interpreter.createContext('/tmp')
    const other = await interpreter.createContext()
    await Promise.all([
      interpreter.runCode('import os; mine = "one"', { context: one }),
      interpreter.runCode('import os; mine = "other"', { context: other }),
    ])
    const say = 'print(mine, os.getcwd())'
    assert.equal((await interpreter.runCode(say, { context: one })).stdout, 'one /tmp\n')
    assert.match((await interpreter.runCode(say, { context: other })).stdout, /^other \/home\//)
    assert.deepEqual(
      (await interpreter.listContexts()).map(({ id }) => id),
      [one.id, other.id],
    )
    await interpreter.deleteContext(one)
    await assert.rejects(interpreter.runCode('1', { context: one }), /context not found/)
    assert.deepEqual(
      (await interpreter.listContexts()).map(({ id }) => id),
      [other.id],
    )
    await interpreter.deleteContext(other)
  })

  test('if interpreted code exceeds its timeout, the SDK throws an error; the context keeps its variables', async () => {
    const endless = 'kept = 1\nimport time\nwhile True: time.sleep(0.01)'
    await assert.rejects(sandbox.codeInterpreter.runCode(endless, { timeout: 1 }), DaytonaTimeoutError)
    assert.equal((await sandbox.codeInterpreter.runCode('print(kept)')).stdout, '1\n')
  })

  test('if interpreted code ends its Python process, the SDK throws an error; the next run works', async () => {
    await assert.rejects(sandbox.codeInterpreter.runCode('import os; os._exit(3)'), /exit code 3/)
    assert.equal((await sandbox.codeInterpreter.runCode('print("fresh")')).stdout, 'fresh\n')
  })
})
