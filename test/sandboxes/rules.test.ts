// Tests the main rules of the toolbox's documentation in a real sandbox. Tests of single endpoints are in src/toolbox.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, suite, test } from 'node:test'
import type { Daytona, Sandbox } from '@daytona/sdk'
import { WebSocket } from 'ws'
import { type Box, boxOf, until } from './box.ts'
import { type Platform, platform } from './harness.ts'
import { Screen } from './screen.ts'
import { connectTo } from './sdk-client.ts'

let alcove: Platform
let daytona: Daytona
let sandbox: Sandbox
/** The sandbox of these tests, for calls without the SDK. */
let box: Box

before(async () => {
  alcove = await platform()
  daytona = connectTo(alcove)
  sandbox = await daytona.create()
  box = boxOf(alcove, (await alcove.api('GET', `/sandbox/${sandbox.id}`)).body)
})
after(async () => {
  await sandbox?.delete()
  await daytona?.[Symbol.asyncDispose]()
  await alcove?.[Symbol.asyncDispose]()
})

const execute = (body: object) => box.toolbox('POST', '/process/execute', body)
const runCode = (body: object) => box.toolbox('POST', '/process/code-run', body)

suite('command execution', () => {
  test('an `execute` call that sets no timeout answers 408 after 10 seconds, and its command is ended', async () => {
    const [ended, whole] = await Promise.all([
      execute({ command: 'sleep 30; echo whole' }),
      execute({ command: 'sleep 5; echo whole' }),
    ])
    assert.deepEqual([ended.status, ended.body['code']], [408, 'PROCESS_EXECUTION_TIMEOUT'])
    assert.deepEqual([whole.status, whole.body], [200, { exitCode: 0, result: 'whole\n' }])
  })

  test('a `cwd` that begins with a slash is absolute; any other `cwd` is below the user’s home', async () => {
    await execute({ command: 'mkdir -p below' })
    const pwd = async (cwd: string) => (await execute({ command: 'pwd', cwd })).body['result']
    assert.deepEqual([await pwd('below'), await pwd('/tmp')], ['/home/daytona/below\n', '/tmp\n'])
  })

  test('execute answers 200 with the exit code even if the command fails', async () => {
    const { status, body } = await execute({ command: 'echo why; exit 3' })
    assert.deepEqual([status, body], [200, { exitCode: 3, result: 'why\n' }])
    assert.equal((await execute({ command: 'no-such-program' })).body['exitCode'], 127)
  })
})

suite('code-run, which keeps no state', () => {
  for (const [language, sets, asks] of [
    ['python', 'import builtins; builtins.x = x = 1', 'print("x" in globals() or hasattr(__builtins__, "x"))'],
    ['javascript', 'globalThis.x = 1', 'console.log("x" in globalThis ? "True" : "False")'],
    ['typescript', '(globalThis as any).x = 1', 'console.log("x" in globalThis ? "True" : "False")'],
  ] as const) {
    test(`${language} code sees no variables or imports of earlier calls`, async () => {
      assert.deepEqual((await runCode({ language, code: sets })).body, { exitCode: 0, result: '' })
      assert.deepEqual((await runCode({ language, code: asks })).body, { exitCode: 0, result: 'False\n' })
    })
  }

  test('code runs in the language of its sandbox, if the call names no language', async () => {
    const typescript = await daytona.create({ language: 'typescript' })
    const other = boxOf(alcove, (await alcove.api('GET', `/sandbox/${typescript.id}`)).body)
    const code = 'const n: number = 7; console.log(n)'
    assert.deepEqual((await other.toolbox('POST', '/process/code-run', { code })).body, { exitCode: 0, result: '7\n' })
    await typescript.delete()
    assert.equal((await runCode({ code: 'print(sum([3, 4]))' })).body['result'], '7\n')
  })
})

suite('the interpreter, which keeps state', () => {
  test('an interpreter context can run only Python code', async () => {
    assert.equal((await box.toolbox('POST', '/process/interpreter/context', { language: 'javascript' })).status, 400)
    const made = await box.toolbox('POST', '/process/interpreter/context', {})
    assert.deepEqual([made.status, made.body['language']], [200, 'python'])
    await box.toolbox('DELETE', `/process/interpreter/context/${made.body['id']}`)
  })

  test('an interpreter context keeps variables and imports; calls without a context use the default context', async () => {
    const { codeInterpreter } = sandbox
    const context = await codeInterpreter.createContext()
    await codeInterpreter.runCode('import math\nx = 20', { context })
    await codeInterpreter.runCode('x = 1')
    assert.equal((await codeInterpreter.runCode('print(math.floor(x + 0.5))', { context })).stdout, '20\n')
    assert.equal((await codeInterpreter.runCode('print(x)')).stdout, '1\n')
    assert.equal((await codeInterpreter.runCode('math')).error?.name, 'NameError')
    await codeInterpreter.deleteContext(context)
  })

  test('interpreter contexts that callers made can be listed and deleted, but not the default context', async () => {
    const { codeInterpreter } = sandbox
    await codeInterpreter.runCode('pass')
    const context = await codeInterpreter.createContext()
    assert.deepEqual(
      (await codeInterpreter.listContexts()).map(({ id }) => id),
      [context.id],
    )
    await codeInterpreter.deleteContext(context)
    assert.deepEqual(await codeInterpreter.listContexts(), [])
    await assert.rejects(codeInterpreter.runCode('pass', { context }))
    assert.equal((await box.toolbox('DELETE', '/process/interpreter/context/default')).status, 400)
  })
})

suite('sessions', () => {
  test('each session is a separate shell, whose variables and directory stay the same between commands', async () => {
    const { process } = sandbox
    for (const id of ['one', 'other']) await process.createSession(id)
    const run = async (id: string, command: string) => (await process.executeSessionCommand(id, { command })).stdout
    for (const id of ['one', 'other']) await run(id, `cd /tmp; export NAME=${id}; f() { echo "f of $NAME"; }`)
    await run('other', 'cd /')
    assert.deepEqual(
      [await run('one', 'pwd; f'), await run('other', 'pwd; f')],
      ['/tmp\nf of one\n', '/\nf of other\n'],
    )
    for (const id of ['one', 'other']) await process.deleteSession(id)
  })

  test('with `runAsync`, a call returns a cmdId immediately; other calls read the command’s logs and status', async () => {
    await sandbox.process.createSession('async')
    // The command waits for a line of input, which this test sends only after the call has returned. So the call did not wait for
    // the end of the command.
    const exec = { command: 'echo begun; read line; echo "got $line"; exit_code=4; (exit $exit_code)', runAsync: true }
    const { status, body } = await box.toolbox('POST', '/process/session/async/exec', exec)
    assert.deepEqual([status, Object.keys(body)], [202, ['cmdId']])
    const path = `/process/session/async/command/${body['cmdId']}`
    await until('its first output', async () => (await box.toolbox('GET', `${path}/logs`)).body['stdout'] === 'begun\n')
    assert.equal((await box.toolbox('GET', path)).body['exitCode'], undefined)
    assert.equal((await box.toolbox('POST', `${path}/input`, { data: 'word' })).status, 204)
    await until('its end', async () => (await box.toolbox('GET', path)).body['exitCode'] === 4)
    assert.match(String((await box.toolbox('GET', `${path}/logs`)).body['stdout']), /got word\n$/)
    await sandbox.process.deleteSession('async')
  })

  // The sandbox of this test has no entrypoint. images.test.ts tests the entrypoint session of images with an entrypoint.
  test('the entrypoint session of a sandbox is not listed, and is empty if the sandbox has no entrypoint', async () => {
    assert.deepEqual(await sandbox.process.getEntrypointSession(), { sessionId: 'entrypoint', commands: [] })
    assert.deepEqual(await sandbox.process.listSessions(), [])
  })
})

suite('terminals (PTY sessions)', () => {
  const open = async (id: string) => {
    const screen = new Screen()
    const pty = await sandbox.process.createPty({ id, onData: screen.take })
    return { pty, screen }
  }

  test('a terminal takes text or bytes as input, treats byte 3 as Ctrl+C, and streams output', async () => {
    const { pty } = await open('input')
    const url = `${String(box.record['toolboxProxyUrl']).replace('http', 'ws')}/${box.id}/process/pty/input/connect`
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${alcove.key}` } })
    const screen = new Screen()
    socket.on('message', (data: Buffer, isBinary) => isBinary && screen.take(data))
    await once(socket, 'open')
    socket.send('echo te$((1))xt; sleep 3600\n')
    await screen.shows(/te1xt/)
    socket.send(Buffer.of(3))
    socket.send(Buffer.from('echo "raw <$?>"\n'))
    await screen.shows(/raw <130>/)
    socket.close()
    await pty.kill()
  })

  test('a terminal’s shell runs on when its connection is closed, and ends when its PTY session is killed', async () => {
    const { pty, screen } = await open('closed')
    await pty.sendInput('echo "<$$>"\n')
    await screen.shows(/<\d+>/)
    const shell = /<(\d+)>/.exec(screen.text)![1]
    await pty.disconnect()
    const again = new Screen()
    const next = await sandbox.process.connectPty('closed', { onData: again.take })
    await next.sendInput('echo "again <$$>"\n')
    await again.shows(new RegExp(`again <${shell}>`))
    await next.kill()
    assert.equal((await box.try(`kill -0 ${shell}`)).exitCode, 1)
    assert.deepEqual(await sandbox.process.listPtySessions(), [])
  })

  test('a terminal that ends sends its exit code, and an error message if the exit code is not 0', async () => {
    for (const [line, exitCode, error] of [
      ['exit 0', 0, undefined],
      ['exit 7', 7, 'non-zero exit'],
      ['kill -9 $$', 137, 'SIGKILL'],
    ] as const) {
      const { pty } = await open('ends')
      await pty.sendInput(`${line}\n`)
      const ended = await pty.wait()
      assert.deepEqual([ended.exitCode, ended.error], [exitCode, error], line)
    }
  })

  test('a resize changes the size of a running terminal', async () => {
    const { pty, screen } = await open('size')
    await pty.resize(133, 44)
    await pty.sendInput('echo "<$(stty size)>"\n')
    await screen.shows(/<44 133>/)
    const { cols, rows } = await sandbox.process.getPtySessionInfo('size')
    assert.deepEqual([cols, rows], [133, 44])
    await pty.kill()
  })
})
