import assert from 'node:assert/strict'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import type { WebSocket } from 'ws'
import { until } from '../agent/native-agent.ts'
import { startToolbox, type Toolbox } from '../testing/toolbox.ts'

const contextPath = '/process/interpreter/context'

type Message = Record<string, string>
type Outcome = { messages: Message[]; code: number; reason: string }

/** Sends one frame as it is, and remembers what came until the close. */
class Run {
  readonly socket: WebSocket
  readonly messages: Message[] = []
  readonly outcome: Promise<Outcome>
  hasEnded = false

  constructor(box: Toolbox, frame: string | Buffer) {
    this.socket = box.socket('/process/interpreter/execute')
    this.socket.on('open', () => this.socket.send(frame))
    this.socket.on('message', (data) => this.messages.push(JSON.parse(data.toString())))
    this.socket.on('error', () => undefined)
    this.outcome = new Promise((resolve) => {
      this.socket.on('close', (code, reason) => {
        this.hasEnded = true
        resolve({ messages: this.messages, code, reason: reason.toString() })
      })
    })
  }

  text(type = 'stdout'): string {
    return this.messages.map((message) => (message['type'] === type ? message['text'] : '')).join('')
  }
}

const start = (box: Toolbox, code: string, more: object = {}) => new Run(box, JSON.stringify({ code, ...more }))

/** Runs to a clean end and answers what was printed. */
const printed = async (box: Toolbox, code: string, more: object = {}) => {
  const run = start(box, code, more)
  const { code: closeCode, messages } = await run.outcome
  assert.deepEqual([closeCode, messages.at(-1)], [1000, completed], JSON.stringify(messages))
  assert.equal(run.text('error'), '')
  return run.text()
}

const completed = { type: 'control', text: 'completed' }

const newContext = async (box: Toolbox, body: object = {}): Promise<string> =>
  (await box.post(contextPath, body)).body.id

/** Waits in Python for a file that the test makes, so that nothing depends on time. */
const waitFor = (file: string) =>
  `import os, time\nwhile not os.path.exists(${JSON.stringify(file)}): time.sleep(0.01)\n`

suite('contexts', () => {
  test('200 makes, lists and deletes them; the default one is not listed', async () => {
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

  test('400 for another language, a directory that cannot be entered, or deleting the default; nothing is made', async () => {
    await using box = await startToolbox()
    for (const body of [{ language: 'r' }, { cwd: '/nowhere' }, { cwd: 'nowhere' }, { cwd: 7 }, { cwd: 'a\0' }, []]) {
      assert.equal((await box.post(contextPath, body)).status, 400, JSON.stringify(body))
    }
    assert.equal((await box.delete(`${contextPath}/default`)).status, 400)
    assert.equal((await box.delete(`${contextPath}/${'x'.repeat(500)}`)).status, 404)
    assert.deepEqual(await box.native.agent.jobs.list(), [])
  })

  test('each has a directory, variables and modules of its own', async () => {
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

  test('429 when there are 64', async () => {
    await using box = await startToolbox()
    const ids: string[] = []
    for (let i = 0; i < 64; i++) ids.push(await newContext(box))
    assert.equal((await box.post(contextPath, {})).status, 429)
    await box.delete(`${contextPath}/${ids[0]}`)
    assert.equal((await box.post(contextPath, {})).status, 200)
  })

  test('422 and a clear error where there is no python3', async () => {
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
})

suite('GET /process/interpreter/execute', () => {
  test('400 without an upgrade', async () => {
    await using box = await startToolbox()
    assert.equal((await box.get('/process/interpreter/execute')).status, 400)
  })

  test('outputs, then completed, then 1000; nothing is echoed that was not printed', async () => {
    await using box = await startToolbox()
    const run = start(box, 'import sys\nprint("out")\nsys.stdout.flush()\nprint("err", file=sys.stderr)\n6 * 7')
    const { messages, code } = await run.outcome
    assert.equal(code, 1000)
    assert.deepEqual([run.text(), run.text('stderr')], ['out\n', 'err\n'])
    assert.deepEqual(messages.at(-1), completed)
  })

  test('output comes while the code runs', async () => {
    await using box = await startToolbox()
    const file = join(box.directory, 'go')
    const run = start(box, `print("first")\n${waitFor(file)}print("second")`)
    await until(() => run.text() === 'first\n', 'the first line')
    assert.equal(run.hasEnded, false)
    writeFileSync(file, '')
    assert.equal((await run.outcome).code, 1000)
    assert.equal(run.text(), 'first\nsecond\n')
  })

  test('what child processes print comes too, and input is at its end', async () => {
    await using box = await startToolbox()
    assert.equal(await printed(box, 'import subprocess; _ = subprocess.run("echo child; cat", shell=True)'), 'child\n')
  })

  test('state is kept: variables, functions, imports, directory, variables of the environment', async () => {
    await using box = await startToolbox()
    await printed(box, 'import os\nx = 1\ndef f(): return x + 1\nos.chdir("/tmp")\nos.environ["MINE"] = "kept"')
    assert.equal(await printed(box, 'print(f(), os.getcwd(), os.environ["MINE"])'), '2 /tmp kept\n')
  })

  test('variables of a run are for that run only', async () => {
    await using box = await startToolbox({ env: { PATH: process.env['PATH']!, OLD: 'old' } })
    const show = 'import os; print(os.environ.get("NEW"), os.environ["OLD"], os.environ["DAYTONA_SANDBOX_ID"])'
    assert.equal(await printed(box, show, { envs: { NEW: 'ü', OLD: 'changed' } }), 'ü changed box-1\n')
    assert.equal(await printed(box, show), 'None old box-1\n')
  })

  test('an error has its name, its value and a traceback of the own lines only, and the state is kept', async () => {
    await using box = await startToolbox()
    await printed(box, 'def f():\n    raise ValueError("nö")')
    const { messages, code } = await start(box, 'x = 5\nprint("before")\nf()').outcome
    assert.equal(code, 1000)
    assert.deepEqual(
      messages.map(({ type }) => type),
      ['stdout', 'error', 'control'],
    )
    const { name, value, traceback } = messages[1]!
    assert.deepEqual([name, value], ['ValueError', 'nö'])
    assert.match(
      traceback!,
      /^Traceback \(most recent call last\):\n {2}File "<cell 2>", line 3, in <module>\n {4}f\(\)\n/,
    )
    assert.match(traceback!, /File "<cell 1>", line 2, in f\n {4}raise ValueError\("nö"\)/)
    assert.doesNotMatch(traceback!, /<string>/)
    assert.equal(await printed(box, 'print(x)'), '5\n')
  })

  test('code that is no Python is an error too, and SystemExit is a completed run', async () => {
    await using box = await startToolbox()
    const { messages } = await start(box, 'print(1').outcome
    assert.deepEqual(
      messages.map(({ type, name }) => name ?? type),
      ['SyntaxError', 'control'],
    )
    assert.equal(await printed(box, 'print("x"); raise SystemExit(3)'), 'x\n')
    assert.equal(await printed(box, 'print("still here")'), 'still here\n')
  })

  for (const [what, frame, code] of [
    ['no JSON', 'print(1)', 1002],
    ['JSON that is no object', '["code"]', 1002],
    ['null', 'null', 1002],
    ['a binary frame', Buffer.from('{"code":"1"}'), 1002],
    ['no code', '{}', 1008],
    ['empty code', '{"code":""}', 1008],
    ['code that is no text', '{"code":7}', 1008],
    ['a negative timeout', '{"code":"1","timeout":-1}', 1008],
    ['a timeout that is no number', '{"code":"1","timeout":"x"}', 1008],
    ['an unknown context', '{"code":"1","contextId":"nobody"}', 1008],
    ['a context that is no text', '{"code":"1","contextId":7}', 1008],
    ['a variable that is no name', '{"code":"1","envs":{"1x":"y"}}', 1008],
    ['a variable with a NUL', '{"code":"1","envs":{"x":"a\\u0000"}}', 1008],
    ['a frame beyond 4 MiB', `{"code":"${'x'.repeat(5 * 1024 * 1024)}"}`, 1009],
  ] as const) {
    test(`${code} for ${what}, and nothing runs`, async () => {
      await using box = await startToolbox()
      const outcome = await new Run(box, frame).outcome
      assert.deepEqual([outcome.code, outcome.messages], [code, []])
      if (code === 1008) assert.notEqual(outcome.reason, '')
      assert.deepEqual(await box.native.agent.jobs.list(), [])
    })
  }

  test('null is the same as absent, and code of 3 MiB runs', async () => {
    await using box = await startToolbox()
    const more = { contextId: null, timeout: null, envs: null }
    assert.equal(await printed(box, `x = '${'y'.repeat(3 * 1024 * 1024)}'; print(len(x))`, more), '3145728\n')
  })

  test('frames behind the first are not heeded', async () => {
    await using box = await startToolbox()
    const run = start(box, 'print("one")')
    run.socket.on('open', () => {
      run.socket.send('{"code":"print(2)"}')
      run.socket.send(Buffer.from([1, 2, 3]))
    })
    assert.equal((await run.outcome).code, 1000)
    assert.equal(run.text(), 'one\n')
  })

  test('runs in one context come one after the other, in their order; other contexts do not wait', async () => {
    await using box = await startToolbox()
    const file = join(box.directory, 'go')
    const order: number[] = []
    const blocking = start(box, `print("runs")\n${waitFor(file)}n = 0`)
    await until(() => blocking.text() !== '', 'the first run')
    const queued: Promise<unknown>[] = []
    for (let i = 1; i <= 5; i++) {
      const run = start(box, `n += 1\nprint(n == ${i})`)
      queued.push(run.outcome.then(() => order.push(i), assert.fail).then(() => assert.equal(run.text(), 'True\n')))
      await new Promise((resolve) => run.socket.on('open', () => run.socket.ping(() => resolve(undefined))))
      await new Promise((resolve) => run.socket.once('pong', resolve))
    }
    assert.equal(await printed(box, 'print("free")', { contextId: await newContext(box) }), 'free\n')
    assert.deepEqual(order, [])
    writeFileSync(file, '')
    await Promise.all(queued)
    assert.deepEqual(order, [1, 2, 3, 4, 5])
  })

  test('1013 when 64 wait already', async () => {
    await using box = await startToolbox()
    const file = join(box.directory, 'go')
    const blocking = start(box, `print("runs")\n${waitFor(file)}n = 0`)
    await until(() => blocking.text() !== '', 'the first run')
    const runs = Array.from({ length: 80 }, () => start(box, 'n += 1'))
    await until(() => runs.filter(({ hasEnded }) => hasEnded).length >= 16, 'those that are too many')
    writeFileSync(file, '')
    const codes = (await Promise.all(runs.map(({ outcome }) => outcome))).map(({ code }) => code)
    assert.equal(codes.filter((code) => code === 1013).length, 16)
    assert.equal(await printed(box, 'print(n)'), '64\n')
  })

  test('a client that leaves does not end its run; one that waits and leaves is not run', async () => {
    await using box = await startToolbox()
    const file = join(box.directory, 'go')
    const run = start(box, `print("runs")\n${waitFor(file)}print("x" * 100000)\ndone = True`)
    await until(() => run.text() !== '', 'the run')
    const waiting = start(box, 'waited = True')
    await new Promise((resolve) => waiting.socket.on('open', () => waiting.socket.ping(() => resolve(undefined))))
    await new Promise((resolve) => waiting.socket.once('pong', resolve))
    waiting.socket.terminate()
    run.socket.terminate()
    await run.outcome
    writeFileSync(file, '')
    assert.equal(await printed(box, 'print(done, "waited" in dir())'), 'True False\n')
  })

  test('output of 40 MB to a client that does not read is not piled up, and what is lost is said', async () => {
    await using box = await startToolbox()
    const file = join(box.directory, 'done')
    const run = start(
      box,
      `print("runs")\nprint("x" * 40_000_000)\nopen(${JSON.stringify(file)}, "w").close()\nprint("end")`,
    )
    await until(() => run.text() !== '', 'the run')
    run.socket.pause()
    const before = process.memoryUsage.rss()
    await until(() => existsSync(file), 'the end of the code')
    assert.ok(process.memoryUsage.rss() - before < 100 * 1024 * 1024, 'nothing piles up')
    run.socket.resume()
    assert.equal((await run.outcome).code, 1000)
    assert.match(run.text('stderr'), /\[\d+ bytes of output were lost\]/)
    assert.match(run.text(), /end\n$/)
  })

  test('an error of any size, and one that cannot be shown, is an error all the same', async () => {
    await using box = await startToolbox()
    const { messages } = await start(box, 'raise ValueError("x" * 10_000_000)').outcome
    assert.match(messages[0]!['value']!, /^x{16384}… \(10000000 characters\)$/)
    const code = 'class E(Exception):\n    def __str__(self): raise RuntimeError\nraise E'
    assert.equal((await start(box, code).outcome).messages[0]!['name'], 'E')
  })
})

suite('the timeout', () => {
  test('4008 without any control; the code is interrupted and the state kept', async () => {
    await using box = await startToolbox()
    const run = start(box, 'x = 1\nprint("out")\nimport time\nwhile True: time.sleep(0.01)', { timeout: 1 })
    const { code, messages } = await run.outcome
    assert.equal(code, 4008)
    assert.deepEqual(messages, [{ type: 'stdout', text: 'out\n' }])
    assert.equal(await printed(box, 'print(x)'), '1\n')
  })

  test('code that does not heed the interrupt is killed; the context goes on with a fresh state', async () => {
    await using box = await startToolbox()
    const contextId = await newContext(box, { cwd: '/tmp' })
    const code = 'import signal\nx = 1\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass'
    assert.equal((await start(box, code, { timeout: 0.2, contextId }).outcome).code, 4008)
    assert.deepEqual(
      (await box.get(contextPath)).body.contexts.map(({ active }: { active: boolean }) => active),
      [false],
    )
    assert.equal(await printed(box, 'import os; print("x" in dir(), os.getcwd())', { contextId }), 'False /tmp\n')
    assert.deepEqual(
      (await box.get(contextPath)).body.contexts.map(({ active }: { active: boolean }) => active),
      [true],
    )
  })

  test('child processes are interrupted with it', async () => {
    await using box = await startToolbox()
    const code = 'import subprocess\nsubprocess.run(["sleep", "3600"])'
    assert.equal((await start(box, code, { timeout: 0.5 }).outcome).code, 4008)
    assert.equal(await printed(box, 'print(1)'), '1\n')
  })

  test('0 means none', async () => {
    await using box = await startToolbox()
    assert.equal(await printed(box, 'print(1)', { timeout: 0 }), '1\n')
  })
})

suite('a Python that ends', () => {
  test('is an error and 1011, and the next run has a fresh state in the same directory', async () => {
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

  test('because its context was deleted is told as such, to who runs and to who waits', async () => {
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

  test('code that forks leaves one Python, and a child that falls off the end says nothing', async () => {
    await using box = await startToolbox()
    const code = 'import os\npid = os.fork()\nif pid: _ = os.waitpid(pid, 0)\nprint("parent" if pid else "child")'
    assert.deepEqual((await printed(box, code)).split('\n').sort(), ['', 'child', 'parent'])
    assert.equal(await printed(box, 'print(pid > 0)'), 'True\n')
  })
})

suite('what a killed runner left', () => {
  /** What a runner had asked for before it was killed: nobody in this one knows of it. */
  const askAsBefore = async (box: Toolbox, code: string, deadline: number | null) => {
    await printed(box, 'pass')
    const request = JSON.stringify({ id: 'of-the-one-before', code, envs: {}, deadline })
    await box.native.agent.jobs.input('python.default', Buffer.from(`\n${request}\n`))
  }

  test('a run in flight goes on, and the next one waits for it', async () => {
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

  test('its deadline holds', async () => {
    await using box = await startToolbox()
    const begun = join(box.directory, 'begun')
    const code = `x = 7\nopen(${JSON.stringify(begun)}, "w").close()\nimport time\ntime.sleep(3600)`
    await askAsBefore(box, code, Date.now() + 1)
    await until(() => existsSync(begun), 'the run of before')
    assert.equal(await printed(box, 'print(x)'), '7\n')
  })

  test('half a request is passed over', async () => {
    await using box = await startToolbox()
    await printed(box, 'x = 1')
    await box.native.agent.jobs.input('python.default', Buffer.from('\n{"id":"half","code":"x = '))
    assert.equal(await printed(box, 'print(x)'), '1\n')
  })

  test('what the code writes where the messages go is not believed', async () => {
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
