// The kernel kills a process in a sandbox for lack of memory. These tests check what each kind of call then answers.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { type Box, createBox, until } from './box.ts'
import { type Platform, platform } from './harness.ts'
import { connectTo } from './sdk-client.ts'

let alcove: Platform
let box: Box

before(async () => {
  alcove = await platform()
  box = await createBox(alcove, { memory: 1 })
})
after(async () => {
  await box?.[Symbol.asyncDispose]()
  await alcove?.[Symbol.asyncDispose]()
})

const fill = 'a = bytearray(3 << 30)'
const command = `echo before; python3 -c '${fill}'`
const line = /\n\[out of memory: a process was killed at the limit of 1 GiB of this sandbox\]\n$/

suite('a process that is killed for lack of memory', () => {
  test('if a command runs out of memory, execute answers 200 with exit code 137, its output and `oom: true`', async () => {
    const { status, body } = await box.toolbox('POST', '/process/execute', { command, timeout: 60 })
    assert.deepEqual([status, body['exitCode'], body['oom']], [200, 137, true])
    assert.match(String(body['result']), /^before\n/)
    assert.match(String(body['result']), line)
  })

  test('if code runs out of memory, code-run answers 200 with exit code 137, its output and `oom: true`', async () => {
    const { body } = await box.toolbox('POST', '/process/code-run', { code: `print(1)\n${fill}`, language: 'python' })
    assert.deepEqual([body['exitCode'], body['oom']], [137, true])
    assert.match(String(body['result']), line)
  })

  test('a session’s command that runs out of memory has exit code 137, `oom: true`, and the limit in stderr', async () => {
    await box.toolbox('POST', '/process/session', { sessionId: 's' })
    const { body } = await box.toolbox('POST', '/process/session/s/exec', { command })
    assert.deepEqual([body['exitCode'], body['oom'], body['stdout']], [137, true, 'before\n'])
    assert.match(String(body['stderr']), line)
    assert.match(String(body['output']), line)
  })

  test('if interpreter code runs out of memory, the SDK’s error names the memory limit, and so does stderr', async () => {
    await using daytona = connectTo(alcove)
    const sandbox = await daytona.get(box.id)
    let stderr = ''
    const onStderr = ({ output }: { output: string }) => {
      stderr += output
    }
    const running = sandbox.codeInterpreter.runCode(fill, { onStderr })
    await assert.rejects(running, /killed by signal 9: out of memory, the limit is 1 GiB/)
    assert.match(stderr, line)
  })

  const logsOf = async (id: string, headers?: Record<string, string>) => {
    const url = `${box.record['toolboxProxyUrl']}/${box.id}/process/session/s/command/${id}/logs`
    const reply = await fetch(url, { headers: { authorization: `Bearer ${alcove.key}`, ...headers } })
    return reply.text()
  }

  test('an asynchronous command that runs out of memory has `oom: true`, and the end of its log says so', async () => {
    const { body } = await box.toolbox('POST', '/process/session/s/exec', { command, runAsync: true })
    const id = String(body['cmdId'])
    const shown = async () => (await box.toolbox('GET', `/process/session/s/command/${id}`)).body
    await until('its end', async () => (await shown())['exitCode'] !== undefined)
    assert.deepEqual([(await shown())['exitCode'], (await shown())['oom']], [137, true])
    const { body: session } = await box.toolbox('GET', '/process/session/s')
    assert.equal((session['commands'] as { id: string; oom?: true }[]).find((each) => each.id === id)?.oom, true)
    const logs = JSON.parse(await logsOf(id))
    assert.deepEqual([logs.oom, logs.stdout], [true, 'before\n'])
    assert.match(logs.stderr, line)
    assert.match(logs.output, line)
    assert.match(await logsOf(id, { 'x-daytona-sdk-version': '0.143.0' }), line)
  })

  test('a followed log ends with a line about the lack of memory only if its command ran out of memory', async () => {
    await using daytona = connectTo(alcove)
    const { process } = await daytona.get(box.id)
    const { cmdId: before } = await process.executeSessionCommand('s', { command: 'sleep 0.1; (exit 5)' })
    const { cmdId } = await process.executeSessionCommand('s', { command, runAsync: true })
    const follow = async (id: string) => {
      let [stdout, stderr] = ['', '']
      await process.getSessionCommandLogs(
        's',
        id,
        (text) => {
          stdout += text
        },
        (text) => {
          stderr += text
        },
      )
      return { stdout, stderr }
    }
    const { stdout, stderr } = await follow(cmdId!)
    assert.equal(stdout, 'before\n')
    assert.match(stderr, line)
    assert.deepEqual(await follow(before!), { stdout: '', stderr: '' })
    assert.equal(JSON.parse(await logsOf(before!)).oom, undefined)
  })

  test('if a child process runs out of memory but its command succeeds, the answer has `oom: true`', async () => {
    const lived = `python3 -c '${fill}' 2>/dev/null; echo lived`
    const { body } = await box.toolbox('POST', '/process/execute', { command: lived, timeout: 60 })
    assert.deepEqual([body['exitCode'], body['oom']], [0, true])
    assert.match(String(body['result']), /lived\n$/)
    const { body: inSession } = await box.toolbox('POST', '/process/session/s/exec', { command: lived })
    assert.deepEqual([inSession['exitCode'], inSession['oom'], inSession['stdout']], [0, true, 'lived\n'])
    const code = `import subprocess\nprint(subprocess.run(["python3", "-c", "${fill}"]).returncode)`
    const { body: ran } = await box.toolbox('POST', '/process/code-run', { code, language: 'python' })
    assert.deepEqual([ran['exitCode'], ran['oom'], ran['result']], [0, true, '-9\n'])
    await using daytona = connectTo(alcove)
    const { stdout, stderr } = await (await daytona.get(box.id)).codeInterpreter.runCode(code)
    assert.equal(stdout, '-9\n')
    assert.match(stderr, line)
  })

  test('if the shell of a terminal is killed for lack of memory, the SDK’s result for the terminal says so', async () => {
    await using daytona = connectTo(alcove)
    const { process } = await daytona.get(box.id)
    const pty = await process.createPty({ id: 'memory', onData: () => {} })
    await pty.sendInput(`exec python3 -c '${fill}'\n`)
    const { exitCode, error } = await pty.wait()
    assert.deepEqual([exitCode, error], [137, 'out of memory: the limit is 1 GiB'])
  })

  test('the answer to a command that fails for another reason does not mention memory', async () => {
    const { body } = await box.toolbox('POST', '/process/execute', { command: 'kill -9 $$' })
    assert.deepEqual([body['exitCode'], body['oom'], body['result']], [137, undefined, ''])
  })
})
