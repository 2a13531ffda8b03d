import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { until } from '../agent/testing/native-agent.ts'
import { startToolbox, type Toolbox } from '../testing/toolbox.ts'
import { contextPath, newContext, printed, start, waitFor } from './testing/run.ts'

suite('the timeout of interpreter code', () => {
  test('interpreter code is interrupted at its timeout with close code 4008, and its variables stay', async () => {
    await using box = await startToolbox()
    // The timeout includes the start of Python, which takes long on a busy machine. So start Python before.
    await printed(box, 'pass')
    const run = start(box, 'x = 1\nprint("out")\nimport time\nwhile True: time.sleep(0.01)', { timeout: 1 })
    const { code, messages } = await run.outcome
    assert.equal(code, 4008)
    assert.deepEqual(messages, [{ type: 'stdout', text: 'out\n' }])
    assert.equal(await printed(box, 'print(x)'), '1\n')
  })

  test('interpreter code that ignores the interrupt is killed, and its context continues without variables', async () => {
    await using box = await startToolbox()
    const contextId = await newContext(box, { cwd: '/tmp' })
    // Starts Python before the timeout counts, so that the code surely ignores the interrupt when it comes.
    await printed(box, 'import signal', { contextId })
    const code = 'x = 1\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass'
    assert.equal((await start(box, code, { timeout: 1, contextId }).outcome).code, 4008)
    // The client gets its answer before the killed worker has ended, so wait for the worker's end.
    await until(async () => !(await box.get(contextPath)).body.contexts[0].active, 'the end of its worker')
    assert.equal(await printed(box, 'import os; print("x" in dir(), os.getcwd())', { contextId }), 'False /tmp\n')
    assert.deepEqual(
      (await box.get(contextPath)).body.contexts.map(({ active }: { active: boolean }) => active),
      [true],
    )
  })

  test('the timeout of interpreter code also interrupts its child processes', async () => {
    await using box = await startToolbox()
    // Starts Python before the timeout counts, so that the child process runs when the interrupt comes.
    await printed(box, 'import subprocess')
    const code = 'subprocess.run(["sleep", "3600"])'
    assert.equal((await start(box, code, { timeout: 0.5 }).outcome).code, 4008)
    assert.equal(await printed(box, 'print(1)'), '1\n')
  })

  test('interpreter code ends at its deadline even if the gate that started it was killed', async () => {
    await using box = await startToolbox()
    const contextId = await newContext(box)
    const { jobs } = box.native.agent
    // Imitate a gate that was killed after it had sent endless code. The deadline passed 4.9 s ago. The worker ends itself 5 s
    // after a deadline (LATE_SECONDS in worker.py).
    const request = { id: 'of a runner', code: 'sum(range(10 ** 15))', envs: {}, deadline: Date.now() - 4900 }
    await jobs.input(`python.${contextId}`, Buffer.from(`${JSON.stringify(request)}\n`))
    const isEnded = async () => (await jobs.list()).every(({ state }) => state === 'ended')
    await until(isEnded, 'the end of the worker')
    assert.equal(await printed(box, 'print("anew")', { contextId }), 'anew\n')
  })

  test('a timeout of 0 for interpreter code means no timeout', async () => {
    await using box = await startToolbox()
    assert.equal(await printed(box, 'print(1)', { timeout: 0 }), '1\n')
  })
})

suite('the end of an interpreter context’s Python', () => {
  test('if interpreter code ends its Python, the caller gets close code 1011; the next run gets a new Python', async () => {
    await using box = await startToolbox()
    const contextId = await newContext(box, { cwd: '/tmp' })
    for (const [code, words] of [
      ['import os; os._exit(3)', /exit code 3/],
      ['import os; os.kill(os.getpid(), 9)', /signal 9/],
      ['import ctypes; ctypes.string_at(0)', /signal 11/],
    ] as const) {
      const { messages, code: closeCode, reason } = await start(box, `x = 1\n${code}`, { contextId }).outcome
      assert.deepEqual([closeCode, messages.at(-1)!['type']], [1011, 'error'])
      assert.match(messages.at(-1)!['value']!, words)
      assert.match(reason, words)
      assert.equal(await printed(box, 'import os; print("x" in dir(), os.getcwd())', { contextId }), 'False /tmp\n')
    }
  })

  test('deleting an interpreter context closes the sockets of its running and waiting runs', async () => {
    await using box = await startToolbox()
    const contextId = await newContext(box)
    const run = start(box, 'print("runs")\nimport time\ntime.sleep(3600)', { contextId })
    await until(() => run.text() !== '', 'the run')
    const waiting = start(box, 'print(1)', { contextId })
    await new Promise((resolve) => waiting.socket.on('open', () => waiting.socket.ping(() => resolve(undefined))))
    await new Promise((resolve) => waiting.socket.once('pong', resolve))
    assert.equal((await box.delete(`${contextPath}/${contextId}`)).status, 200)
    const { code, reason } = await run.outcome
    assert.deepEqual([code, reason], [1011, 'The context was deleted.'])
    assert.equal((await waiting.outcome).code, 1008)
  })

  test('after interpreter code forks, only the parent continues the context, and the child sends no messages', async () => {
    await using box = await startToolbox()
    const code = 'import os\npid = os.fork()\nif pid: _ = os.waitpid(pid, 0)\nprint("parent" if pid else "child")'
    assert.deepEqual((await printed(box, code)).split('\n').sort(), ['', 'child', 'parent'])
    assert.equal(await printed(box, 'print(pid > 0)'), 'True\n')
  })
})

suite('interpreter runs that a killed gate left behind', () => {
  /**
   * Sends a request directly to the worker, so that the running gate does not know of this run. The deadline is `milliseconds`
   * after the worker has started; null: no deadline.
   */
  const askAsBefore = async (box: Toolbox, code: string, milliseconds: number | null) => {
    await printed(box, 'pass')
    const deadline = milliseconds === null ? null : Date.now() + milliseconds
    const request = JSON.stringify({ id: 'of-the-one-before', code, envs: {}, deadline })
    await box.native.agent.jobs.input('python.default', Buffer.from(`\n${request}\n`))
  }

  test('an interpreter run continues after its gate was killed, and the next run waits for it', async () => {
    await using box = await startToolbox()
    const [begun, go] = [join(box.directory, 'begun'), join(box.directory, 'go')]
    await askAsBefore(box, `open(${JSON.stringify(begun)}, "w").close()\n${waitFor(go)}print("theirs")\nx = 42`, null)
    await until(() => existsSync(begun), 'the run of before')
    const run = start(box, 'print(x)')
    await new Promise((resolve) => run.socket.on('open', () => run.socket.ping(() => resolve(undefined))))
    await new Promise((resolve) => run.socket.once('pong', resolve))
    assert.deepEqual(run.messages, [])
    writeFileSync(go, '')
    assert.equal((await run.outcome).code, 1000)
    assert.equal(run.text(), '42\n')
  })

  test('the deadline of an interpreter run is enforced even after its gate was killed', async () => {
    await using box = await startToolbox()
    const begun = join(box.directory, 'begun')
    const code = `x = 7\nopen(${JSON.stringify(begun)}, "w").close()\nimport time\nwhile True: time.sleep(0.01)`
    await askAsBefore(box, code, 1)
    await until(() => existsSync(begun), 'the run of before')
    assert.equal(await printed(box, 'print(x)'), '7\n')
  })

  test('if a gate is killed while it sends a request to an interpreter, the incomplete request is ignored', async () => {
    await using box = await startToolbox()
    await printed(box, 'x = 1')
    await box.native.agent.jobs.input('python.default', Buffer.from('\n{"id":"half","code":"x = '))
    assert.equal(await printed(box, 'print(x)'), '1\n')
  })

  test('the gate ignores lines that interpreter code writes to the output for messages of `worker.py`', async () => {
    await using box = await startToolbox()
    const code = [
      'import os',
      'for fd in range(200, 210):',
      '    try: os.write(fd, b"garbage\\n{}\\n[1]\\n\\"x\\"\\n" + b"x" * 3_000_000 + b"\\n")',
      '    except OSError: pass',
      'print("after")',
    ].join('\n')
    assert.equal(await printed(box, code), 'after\n')
  })
})

suite('an interpreter run whose message about its end was overwritten', () => {
  /**
   * Python code that ends its run while the client reads nothing. A child process then overwrites the message about the end in the
   * ring.
   */
  const loseEnd = (file: string) => `import subprocess
print("x" * 40_000_000)
fill = "head -c 40000000 /dev/zero | tr '\\\\0' x; touch " + ${JSON.stringify(file)}
subprocess.Popen(["sh", "-c", fill], start_new_session=True)`

  test('an interpreter run whose last message was overwritten reports the loss and ends; the next run works', async () => {
    await using box = await startToolbox()
    const [begun, filled] = [join(box.directory, 'begun'), join(box.directory, 'filled')]
    const run = start(box, `print("runs", flush=True)\n${waitFor(begun)}${loseEnd(filled)}`)
    await until(() => run.text() !== '', 'the run')
    run.socket.pause()
    writeFileSync(begun, '')
    await until(() => existsSync(filled), 'the end of the code')
    run.socket.resume()
    assert.equal((await run.outcome).code, 1000)
    assert.match(run.text('stderr'), /bytes of output were lost/)
    assert.equal(await printed(box, 'print("next")'), 'next\n')
  })
})
