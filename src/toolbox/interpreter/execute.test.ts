import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { holdLongTimers } from '#src/kit/testing/long-timers.ts'
import { until } from '../agent/testing/native-agent.ts'
import { heldBodies } from '../held-bodies.ts'
import { startToolbox } from '../testing/toolbox.ts'
import { completed, newContext, printed, Run, start, waitFor } from './testing/run.ts'

suite('GET /process/interpreter/execute', () => {
  test('GET /process/interpreter/execute answers 400 to a call that is no WebSocket upgrade', async () => {
    await using box = await startToolbox()
    assert.equal((await box.get('/process/interpreter/execute')).status, 400)
  })

  test('an interpreter run sends all printed output, then the message `completed`, then close code 1000', async () => {
    await using box = await startToolbox()
    const run = start(box, 'import sys\nprint("out")\nsys.stdout.flush()\nprint("err", file=sys.stderr)\n6 * 7')
    const { messages, code } = await run.outcome
    assert.equal(code, 1000)
    assert.deepEqual([run.text(), run.text('stderr')], ['out\n', 'err\n'])
    assert.deepEqual(messages.at(-1), completed)
  })

  test('an interpreter run sends output while its code still runs', async () => {
    await using box = await startToolbox()
    const file = join(box.directory, 'go')
    const run = start(box, `print("first")\n${waitFor(file)}print("second")`)
    await until(() => run.text() === 'first\n', 'the first line')
    assert.equal(run.hasEnded, false)
    writeFileSync(file, '')
    assert.equal((await run.outcome).code, 1000)
    assert.equal(run.text(), 'first\nsecond\n')
  })

  test('an interpreter run sends the output of child processes, and its standard input is empty', async () => {
    await using box = await startToolbox()
    assert.equal(await printed(box, 'import subprocess; _ = subprocess.run("echo child; cat", shell=True)'), 'child\n')
    assert.equal(await printed(box, 'import sys; print([sys.stdin.read()], list(sys.stdin))'), "[''] []\n")
    for (const code of ['input()', 'exit()', 'input()']) {
      const { messages } = await start(box, code).outcome
      assert.equal(messages[0]!['name'], code === 'exit()' ? undefined : 'EOFError')
    }
  })

  test('interpreter code can use top-level await, and its tasks still exist in the next run', async () => {
    await using box = await startToolbox()
    const first =
      'import asyncio\nevent = asyncio.Event()\nawait asyncio.sleep(0)\nasync def f():\n  return await asyncio.sleep(0, 5)'
    await printed(box, `${first}\ntask = asyncio.ensure_future(event.wait())`)
    assert.equal(await printed(box, 'event.set()\nprint(await task, await f())'), 'True 5\n')
    assert.equal(await printed(box, 'task = asyncio.create_task(f())\nprint(await task)'), '5\n')
    assert.equal(await printed(box, 'async with asyncio.Lock():\n  print("in")'), 'in\n')
    const { messages } = await start(box, 'x = 1\nraise ValueError(await f())').outcome
    assert.match(messages[0]!['traceback']!, /^Traceback [^\n]*\n {2}File "<cell 5>", line 2, in <module>/)
    assert.equal(await printed(box, 'print(asyncio.run(f()), x)'), '5 1\n')
  })

  test('an await in interpreter code is cancelled at the deadline, and the context keeps its variables', async () => {
    await using box = await startToolbox()
    // The timeout includes the start of Python, which takes long on a busy machine. So start Python before.
    await printed(box, 'import asyncio')
    const code = 'try:\n  await asyncio.sleep(300)\nfinally:\n  ended = True'
    assert.equal((await start(box, code, { timeout: 1 }).outcome).code, 4008)
    assert.equal(await printed(box, 'await asyncio.sleep(0)\nprint(ended)'), 'True\n')
  })

  test('interpreter code finds modules in the working directory and /tmp, even modules made between runs', async () => {
    await using box = await startToolbox()
    const name = `alcove_test_${process.pid}`
    const context = await newContext(box, { cwd: box.directory })
    assert.equal(
      (await start(box, `import ${name}`, { contextId: context }).outcome).messages[0]!['name'],
      'ModuleNotFoundError',
    )
    const inTmp = `/tmp/${name}_tmp.py`
    writeFileSync(join(box.directory, `${name}.py`), 'where = "here"')
    writeFileSync(inTmp, 'where = "tmp"')
    try {
      const code = `import ${name}, ${name}_tmp\nprint(${name}.where, ${name}_tmp.where)`
      assert.equal(await printed(box, code, { contextId: context }), 'here tmp\n')
    } finally {
      rmSync(inTmp)
    }
  })

  test('notebook commands (`%pip`, `!ls`) in interpreter code are refused; the error names an alternative', async () => {
    await using box = await startToolbox()
    const lines = [
      '%pip install x',
      '!ls -la',
      'x = 1\n%matplotlib inline',
      '%%bash\nls',
      'a = !ls',
      '?print',
      'print?',
    ]
    for (const code of lines) {
      const { messages } = await start(box, code).outcome
      const { name, value } = messages[0]!
      assert.equal(name, 'SyntaxError', code)
      assert.match(value!, /%, ! or \? are for IPython.*subprocess\.run/, code)
    }
    const { messages } = await start(box, 'x = (1 %').outcome
    assert.doesNotMatch(messages[0]!['value']!, /IPython/)
  })

  test('the message `completed` of an interpreter run has the last expression’s value as text, HTML or image', async () => {
    await using box = await startToolbox()
    const shown = async (code: string) => {
      const { messages } = await start(box, code).outcome
      return messages.find(({ type }) => type === 'control')
    }
    const table =
      'class T:\n  def _repr_html_(self): return "<b>ü</b>"\n  def _repr_png_(self): return b"\\x89P"\n  def __repr__(self): return "T!"\n'
    assert.deepEqual(await shown(`${table}T()`), {
      ...completed,
      display: { 'text/html': '<b>ü</b>', 'image/png': 'iVA=', 'text/plain': 'T!' },
    })
    for (const silent of ['T(); x = 1', 'T', '42', 'None', '"text"'])
      assert.deepEqual(await shown(silent), completed, silent)
    const broken =
      'class B:\n  def _repr_html_(self): raise ValueError\n  def _repr_svg_(self): return "x" * 10**7\nB()'
    assert.deepEqual(await shown(broken), completed)
  })

  test('the interpreter’s program (`worker.py`) is not in process arguments, nor in a child’s environment', async () => {
    await using box = await startToolbox()
    const code =
      'import subprocess; print(open("/proc/self/cmdline").read().count("def "), subprocess.run("env", capture_output=True, text=True, shell=True).stdout.count("_ALCOVE"))'
    assert.equal(await printed(box, code), '0 0\n')
  })

  test('an interpreter context keeps variables, functions, imports, directory and environment between runs', async () => {
    await using box = await startToolbox()
    await printed(box, 'import os\nx = 1\ndef f(): return x + 1\nos.chdir("/tmp")\nos.environ["MINE"] = "kept"')
    assert.equal(await printed(box, 'print(f(), os.getcwd(), os.environ["MINE"])'), '2 /tmp kept\n')
  })

  test('environment variables given to an interpreter run apply to that run only', async () => {
    await using box = await startToolbox({ env: { PATH: process.env['PATH']!, OLD: 'old' } })
    const show = 'import os; print(os.environ.get("NEW"), os.environ["OLD"], os.environ["DAYTONA_SANDBOX_ID"])'
    assert.equal(await printed(box, show, { envs: { NEW: 'ü', OLD: 'changed' } }), 'ü changed box-1\n')
    assert.equal(await printed(box, show), 'None old box-1\n')
  })

  test('an error in interpreter code has a name, a value and a traceback of the code’s own lines', async () => {
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

  test('invalid Python is an error of the interpreter run, and SystemExit completes the run without error', async () => {
    await using box = await startToolbox()
    const { messages } = await start(box, 'print(1').outcome
    assert.deepEqual(
      messages.map(({ type, name }) => name ?? type),
      ['SyntaxError', 'control'],
    )
    assert.equal(await printed(box, 'print("x"); raise SystemExit(3)'), 'x\n')
    const { messages: leaving } = await start(box, 'import sys; sys.exit("why")').outcome
    assert.deepEqual(leaving[0], { type: 'stderr', text: 'why\n' })
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
    test(`an interpreter run’s WebSocket closes with ${code} for ${what}, and nothing runs`, async () => {
      await using box = await startToolbox()
      const outcome = await new Run(box, frame).outcome
      assert.deepEqual([outcome.code, outcome.messages], [code, []])
      if (code === 1008) assert.notEqual(outcome.reason, '')
      assert.deepEqual(await box.native.agent.jobs.list(), [])
    })
  }

  test('the WebSocket of an interpreter run closes with 1002 if the client sends no request within a minute', async () => {
    await using box = await startToolbox()
    using timers = holdLongTimers()
    const socket = box.socket('/process/interpreter/execute')
    const closed = once(socket, 'close')
    await once(socket, 'open')
    timers.pass(59_999)
    assert.equal(socket.readyState, socket.OPEN)
    timers.pass(1)
    const [code, reason] = await closed
    assert.deepEqual([code, String(reason)], [1002, 'no request came'])
    assert.deepEqual(await box.native.agent.jobs.list(), [])
  })

  test('an interpreter request treats a null field as absent, and may have 3 MiB of code', async () => {
    await using box = await startToolbox()
    const more = { contextId: null, timeout: null, envs: null }
    assert.equal(await printed(box, `x = '${'y'.repeat(3 * 1024 * 1024)}'; print(len(x))`, more), '3145728\n')
  })

  test('the WebSocket of an interpreter run ignores all frames of the client after the first', async () => {
    await using box = await startToolbox()
    const run = start(box, 'print("one")')
    run.socket.on('open', () => {
      run.socket.send('{"code":"print(2)"}')
      run.socket.send(Buffer.from([1, 2, 3]))
    })
    assert.equal((await run.outcome).code, 1000)
    assert.equal(run.text(), 'one\n')
  })

  test('runs in one interpreter context start in order of arrival; runs in other contexts do not wait', async () => {
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

  test('a new interpreter run is closed with 1013 if 16 MiB of code already wait in the sandbox’s contexts', async () => {
    await using box = await startToolbox()
    const file = join(box.directory, 'go')
    const contexts = [undefined, await newContext(box)].map((contextId) => (contextId ? { contextId } : {}))
    const blocking = contexts.map((context) => start(box, `print("runs")\n${waitFor(file)}`, context))
    for (const run of blocking) await until(() => run.text() !== '', 'a run')
    const comment = `# ${'x'.repeat(3 * 1024 * 1024)}\nprint("long")`
    const runs = Array.from({ length: 8 }, (_, at) => start(box, comment, contexts[at % 2]))
    await until(() => runs.filter(({ hasEnded }) => hasEnded).length >= 3, 'those that are too many')
    writeFileSync(file, '')
    const codes = (await Promise.all(runs.map(({ outcome }) => outcome))).map(({ code }) => code)
    assert.deepEqual(codes.toSorted(), [1000, 1000, 1000, 1000, 1000, 1013, 1013, 1013])
    // The code of a finished run no longer counts towards the memory limit, so another run succeeds.
    assert.equal(await printed(box, comment), 'long\n')
  })

  test('if the code of all runs exceeds 256 MiB, new runs get 1013; 64 KiB of code per sandbox always run', async (t) => {
    await using box = await startToolbox()
    const most = 16 * 1024 * 1024
    for (let other = 0; other < 16; other++) {
      assert.ok(heldBodies.take(`other-${other}`, most))
      t.after(() => heldBodies.give(`other-${other}`, most))
    }
    assert.equal((await start(box, `# ${'x'.repeat(64 * 1024)}`).outcome).code, 1013)
    for (let round = 0; round < 2; round++)
      assert.equal(await printed(box, `print("short") # ${'x'.repeat(40_000)}`), 'short\n')
  })

  test('a new interpreter run is closed with 1013 if 64 runs already wait for its context', async () => {
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

  test('if a client disconnects, a started interpreter run continues, and a waiting run never starts', async () => {
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

  test('40 MB of output for an interpreter client that does not read are dropped, and the loss is reported', async () => {
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

  test('an exception in interpreter code is reported as an error even if it is huge or has no text', async () => {
    await using box = await startToolbox()
    const { messages } = await start(box, 'raise ValueError("x" * 10_000_000)').outcome
    assert.match(messages[0]!['value']!, /^x{16384}… \(10000000 characters\)$/)
    const code = 'class E(Exception):\n    def __str__(self): raise RuntimeError\nraise E'
    assert.equal((await start(box, code).outcome).messages[0]!['name'], 'E')
  })
})
