// Interpreter contexts in real sandboxes, driven by the public SDK as its users drive it.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { Daytona, DaytonaTimeoutError, type Sandbox } from '@daytona/sdk'
import { until } from './box.ts'
import { type Platform, platform } from './harness.ts'

const connectTo = (alcove: Platform) => new Daytona({ apiKey: alcove.key, apiUrl: `${alcove.url}/api` })

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

  test('runs code, keeps its state, and streams its output', async () => {
    const pieces: string[] = []
    const { stdout, stderr, error } = await sandbox.codeInterpreter.runCode(
      'import sys, os\nx = 20\nprint("out", os.environ["A"])\nprint("err", file=sys.stderr)',
      { envs: { A: 'b' }, onStdout: ({ output }) => void pieces.push(output) },
    )
    assert.deepEqual([stdout, stderr, error, pieces.join('')], ['out b\n', 'err\n', undefined, 'out b\n'])
    const next = await sandbox.codeInterpreter.runCode('print(x + 1, os.environ.get("A"))')
    assert.equal(next.stdout, '21 None\n')
  })

  test('an error is a result, with its name, value and traceback', async () => {
    const { stdout, error } = await sandbox.codeInterpreter.runCode('print("before")\n1 / 0')
    assert.deepEqual([stdout, error?.name, error?.value], ['before\n', 'ZeroDivisionError', 'division by zero'])
    assert.match(error!.traceback!, /line 2, in <module>\n {4}1 \/ 0/)
  })

  test('contexts know nothing of each other, and are listed and deleted', async () => {
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

  test('a timeout is the timeout error of the SDK, and the state is kept', async () => {
    const endless = 'kept = 1\nimport time\nwhile True: time.sleep(0.01)'
    await assert.rejects(sandbox.codeInterpreter.runCode(endless, { timeout: 1 }), DaytonaTimeoutError)
    assert.equal((await sandbox.codeInterpreter.runCode('print(kept)')).stdout, '1\n')
  })

  test('a Python that dies is an error of the SDK, and the next run works', async () => {
    await assert.rejects(sandbox.codeInterpreter.runCode('import os; os._exit(3)'), /exit code 3/)
    assert.equal((await sandbox.codeInterpreter.runCode('print("fresh")')).stdout, 'fresh\n')
  })
})

suite('kill -9 of runner and control', () => {
  test('contexts are still there with what they know; a run in flight goes on, and the next one waits for it', async () => {
    await using alcove = await platform({ own: true })
    await using daytona = connectTo(alcove)
    const sandbox = await daytona.create()
    const interpreter = sandbox.codeInterpreter
    const context = await interpreter.createContext('/tmp')
    const begin = 'import os, time\nstate = [os.getpid()]\nprint(state[0])'
    const pid = (await interpreter.runCode(begin, { context })).stdout.trim()
    const inFlight =
      'open("begun", "w").close()\nwhile not os.path.exists("go"): time.sleep(0.01)\nstate.append("went on")'
    const lost = assert.rejects(interpreter.runCode(inFlight, { context }))
    const run = async (command: string) => (await sandbox.process.executeCommand(command)).exitCode === 0
    await until('the run has begun', () => run('test -e /tmp/begun'))

    await Promise.all([alcove.kill('runner'), alcove.kill('control')])

    await lost
    await until('the sandbox answers again', () => run('touch /tmp/go').catch(() => false), 60)
    const { stdout } = await interpreter.runCode('print(os.getpid(), state)', { context })
    assert.equal(stdout, `${pid} [${pid}, 'went on']\n`)
    assert.deepEqual(
      (await interpreter.listContexts()).map(({ id, cwd }) => [id, cwd]),
      [[context.id, '/tmp']],
    )
    await sandbox.delete()
  })
})
