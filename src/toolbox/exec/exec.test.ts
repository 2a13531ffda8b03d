import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, relative } from 'node:path'
import { suite, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Problem } from '#src/problems.ts'
import { until } from '../agent/testing/native-agent.ts'
import { startToolbox } from '../testing/toolbox.ts'
import { Answers, answersOf } from './repeated-commands.ts'

const execute = '/process/execute'

/** Whether the process is alive and not a zombie. */
const isAlive = (pid: number) => {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

const pidIn = async (file: string) => {
  await until(() => existsSync(file) && readFileSync(file, 'utf8').endsWith('\n'), file)
  return Number(readFileSync(file, 'utf8'))
}

suite('POST /process/execute', () => {
  test('POST /process/execute answers 200 with the exit code and the output', async () => {
    await using box = await startToolbox()
    assert.deepEqual(await box.post(execute, { command: 'echo hello' }), {
      status: 200,
      body: { exitCode: 0, result: 'hello\n' },
    })
  })

  test('POST /process/execute answers 200 even if the command fails', async () => {
    await using box = await startToolbox()
    assert.deepEqual(await box.post(execute, { command: 'exit 7' }), { status: 200, body: { exitCode: 7, result: '' } })
    assert.equal((await box.post(execute, { command: 'kill -9 $$' })).body.exitCode, 137)
  })

  test('a command’s standard output and standard error are combined in order of arrival, byte for byte', async () => {
    await using box = await startToolbox()
    const { body } = await box.post(execute, { command: 'echo 1; echo 2 >&2; printf " 3\\t\\n\\n"; printf 4 >&2' })
    assert.equal(body.result, '1\n2\n 3\t\n\n4')
  })

  test('the shell gets the command’s text unchanged, with several lines, quotes and here-documents', async () => {
    await using box = await startToolbox()
    const command = `x="a  'b'"\nfor i in 1 2; do\n  echo "$i $x"\ndone\ncat <<'END'\n$x\nEND`
    assert.equal((await box.post(execute, { command })).body.result, "1 a  'b'\n2 a  'b'\n$x\n")
  })

  test('`pkill -f WORD` as a command does not kill the shell that runs it', async () => {
    await using box = await startToolbox()
    const name = `nothing-is-called-so-${process.pid}`
    const command = `pkill -f "${name}"; pgrep -af ${name} || echo "after, exit $?"`
    assert.deepEqual((await box.post(execute, { command })).body, { exitCode: 0, result: 'after, exit 1\n' })
  })

  test('programs that a command starts inherit no environment variable that has the command’s text', async () => {
    await using box = await startToolbox()
    const { body } = await box.post(execute, { command: 'env | grep -i "command" || echo "$# $-"', envs: { A: 'b' } })
    assert.match(body.result, /^0 [a-zA-Z]+\n$/)
  })

  test('a command runs in bash if the image has it', async () => {
    await using box = await startToolbox()
    assert.match((await box.post(execute, { command: 'echo $BASH_VERSION' })).body.result, /^\d/)
  })

  test('a command runs in sh if the image has no bash', async () => {
    await using box = await startToolbox()
    symlinkSync('/bin/sh', join(box.directory, 'sh'))
    const { body } = await box.post(execute, { command: 'echo "[$BASH_VERSION]"', envs: { PATH: box.directory } })
    assert.deepEqual(body, { exitCode: 0, result: '[]\n' })
  })

  test('POST /process/execute answers 200 with exit code -1 if the image has neither bash nor sh', async () => {
    await using box = await startToolbox()
    const { status, body } = await box.post(execute, { command: 'echo', envs: { PATH: box.directory } })
    assert.deepEqual([status, body.exitCode], [200, -1])
    assert.match(body.result, /neither bash nor sh/)
  })

  test('a command’s standard input is empty', async () => {
    await using box = await startToolbox()
    assert.equal((await box.post(execute, { command: 'cat; read x || echo end' })).body.result, 'end\n')
  })

  test('a command of 1 MiB runs with an empty standard input', async () => {
    await using box = await startToolbox()
    const command = `x='${'y'.repeat(1024 * 1024)}'; echo \${#x}; cat; echo done`
    assert.equal((await box.post(execute, { command })).body.result, '1048576\ndone\n')
  })

  test('POST /process/execute answers 413 for a body above the limit', async () => {
    await using box = await startToolbox()
    assert.equal((await box.post(execute, { command: 'x'.repeat(9 * 1024 * 1024) })).status, 413)
  })

  test('POST /process/execute answers with U+FFFD in place of invalid UTF-8 in the output', async () => {
    await using box = await startToolbox()
    assert.equal((await box.post(execute, { command: "printf 'a\\377b\\0c'" })).body.result, 'a\ufffdb\0c')
  })

  test('1 GiB of a command’s output is cut to its beginning and end, and the gate’s memory stays small', async () => {
    await using box = await startToolbox()
    const before = process.memoryUsage.rss()
    const { status, body } = await box.post(execute, {
      command: 'echo BEGIN; head -c 1G /dev/zero | tr "\\0" x; echo REAL-END',
      timeout: 0,
    })
    assert.deepEqual([status, body.exitCode], [200, 0])
    assert.match(body.result, /^BEGIN\nx+\n\[output truncated: \d+ bytes were left out here\]\nx+REAL-END\n$/)
    assert.ok(body.result.length < 17 * 1024 * 1024)
    assert.ok(process.memoryUsage.rss() - before < 400 * 1024 * 1024, 'the memory of the runner stays bounded')
  })

  test('POST /process/execute does not wait for a background child of the command', async () => {
    await using box = await startToolbox()
    const file = join(box.directory, 'pid')
    const { body } = await box.post(execute, { command: `sleep 300 & echo $! > ${file}; echo started`, timeout: 0 })
    assert.equal(body.result, 'started\n')
    process.kill(await pidIn(file), 'SIGKILL')
  })
})

suite('POST /process/execute: timeout', () => {
  test('POST /process/execute answers 408 after the timeout, and kills the command’s whole process group', async () => {
    await using box = await startToolbox()
    const file = join(box.directory, 'pid')
    const command = `trap '' TERM; sh -c 'trap "" TERM; echo $$ > ${file}; sleep 300; sleep 300'; sleep 300`
    const reply = box.post(execute, { command, timeout: 1 })
    const pid = await pidIn(file)
    const { status, body } = await reply
    assert.deepEqual([status, body.code, body.source], [408, 'PROCESS_EXECUTION_TIMEOUT', 'DAYTONA_DAEMON'])
    assert.match(body.message, /timeout/)
    await until(() => !isAlive(pid), 'the end of the group')
  })

  test('POST /process/execute answers 408 with the output so far, also if repeated with its Idempotency-Key', async () => {
    await using box = await startToolbox()
    const again = { 'idempotency-key': 'same' }
    for (const headers of [{}, again, again]) {
      const { status, body } = await box.post(execute, { command: 'echo before; sleep 300', timeout: 1 }, headers)
      assert.deepEqual([status, body.output], [408, 'before\n'])
    }
  })

  test('POST /process/execute ends a command after 10 seconds if the call has no timeout', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { deadlineOf } = await import('#src/toolbox/running/deadline.ts')
    const { defaultExecuteTimeoutSeconds } = await import('#src/gate/config.ts')
    const { ServerResponse, IncomingMessage } = await import('node:http')
    const { Socket } = await import('node:net')
    const raw = new ServerResponse(new IncomingMessage(new Socket()))
    using deadline = deadlineOf({ raw }, { seconds: defaultExecuteTimeoutSeconds })
    t.mock.timers.tick(9_999)
    assert.equal(deadline.signal.aborted, false)
    t.mock.timers.tick(1)
    assert.equal(deadline.signal.reason.code, 'execution_timeout')
  })

  test('POST /process/execute answers 408 at the default timeout, and says how to change the timeout', async () => {
    await using box = await startToolbox({}, { executeTimeoutSeconds: 1 })
    const { status, body } = await box.post(execute, { command: 'sleep 300' })
    assert.equal(status, 408)
    assert.match(body.message, /^Command execution timeout: .* 1 seconds\. This is the default; give a "timeout"/)
    const asked = await box.post(execute, { command: 'sleep 300', timeout: 1 })
    assert.doesNotMatch(asked.body.message, /default/)
  })

  test('POST /process/execute has no default timeout for calls with an SDK’s version header', async () => {
    await using box = await startToolbox({}, { executeTimeoutSeconds: 1 })
    const sdk = { 'x-daytona-sdk-version': '0.216.0' }
    assert.equal((await box.post(execute, { command: 'sleep 1.5; echo done' }, sdk)).body.result, 'done\n')
    assert.equal((await box.post(execute, { command: 'sleep 300', timeout: 1 }, sdk)).status, 408)
  })

  test('POST /process/execute has no timeout if the requested timeout is 0, null or above the maximum of a timer', async () => {
    await using box = await startToolbox()
    for (const timeout of [0, 1e12, null]) {
      assert.equal((await box.post(execute, { command: 'sleep 0.1; echo ok', timeout })).body.result, 'ok\n')
    }
  })

  test('POST /process/execute answers 400 for a timeout that is negative or not a number', async () => {
    await using box = await startToolbox()
    for (const timeout of [-1, '5', {}]) assert.equal((await box.post(execute, { command: 'ls', timeout })).status, 400)
  })

  test('POST /process/execute ends the command if the caller closes the connection', async () => {
    await using box = await startToolbox()
    const file = join(box.directory, 'pid')
    const call = box.call(execute, { command: `echo $$ > ${file}; sleep 300; sleep 300`, timeout: 0 })
    call.on('error', () => undefined)
    const pid = await pidIn(file)
    assert.ok(isAlive(pid))
    call.destroy()
    await until(() => !isAlive(pid), 'the end of the command')
  })
})

suite('POST /process/execute: Idempotency-Key', () => {
  const key = (name: string) => ({ 'idempotency-key': name })

  test('POST /process/execute runs a command once per Idempotency-Key, and repeats the first answer', async () => {
    await using box = await startToolbox()
    const file = join(box.directory, 'ran')
    const body = { command: `echo x >> ${file}; sleep 0.2; wc -l < ${file}; exit 3` }
    const first = await Promise.all([box.post(execute, body, key('once')), box.post(execute, body, key('once'))])
    const replies = [...first, await box.post(execute, body, key('once'))]
    for (const reply of replies) assert.deepEqual(reply, { status: 200, body: { exitCode: 3, result: '1\n' } })
    assert.equal((await box.post(execute, body, key('again'))).body.result, '2\n')
  })

  test('POST /process/execute repeated with its Idempotency-Key after a lost connection returns the answer', async () => {
    await using box = await startToolbox()
    const [begun, goOn] = [join(box.directory, 'begun'), join(box.directory, 'go-on')]
    const body = { command: `echo $$ > ${begun}; until [ -e ${goOn} ]; do sleep 0.02; done; echo done`, timeout: 60 }
    const call = box.call(execute, body, key('lost'))
    call.on('error', () => undefined)
    await pidIn(begun)
    call.destroy()
    writeFileSync(goOn, '')
    assert.deepEqual((await box.post(execute, body, key('lost'))).body, { exitCode: 0, result: 'done\n' })
  })

  test('POST /process/execute answers 408 to a retry with the Idempotency-Key of a call that timed out', async () => {
    await using box = await startToolbox()
    const body = { command: 'sleep 60', timeout: 0.1 }
    for (let call = 0; call < 2; call++) assert.equal((await box.post(execute, body, key('late'))).status, 408)
    assert.equal(answersOf('box-1').isEmpty, false)
    assert.equal(answersOf('box-of-another').isEmpty, true)
  })

  test('POST /process/execute answers 422 for a used Idempotency-Key with another body, 400 for an invalid key', async () => {
    await using box = await startToolbox()
    assert.equal((await box.post(execute, { command: 'true' }, key('used'))).status, 200)
    assert.equal((await box.post(execute, { command: 'false' }, key('used'))).status, 422)
    for (const name of ['', 'a b', 'x'.repeat(256)]) {
      assert.equal((await box.post(execute, { command: 'true' }, key(name))).status, 400, name)
    }
  })
})

suite('stored answers of commands with an Idempotency-Key', () => {
  const answer = (bytes: number) => async () => ({ exitCode: 0, result: 'x'.repeat(bytes) })

  test('a sandbox’s stored answers take at most 256 KiB together; a retry gets 409 if the answer was longer', async () => {
    const answers = new Answers()
    for (const key of ['a', 'b', 'c']) await answers.once(key, key, answer(100 * 1024))
    let again = 0
    const rerun = async () => {
      again += 1
      return { exitCode: 0, result: '' }
    }
    await answers.once('c', 'c', rerun)
    assert.equal(again, 0)
    await answers.once('a', 'a', rerun)
    assert.equal(again, 1)
    assert.equal((await answers.once('long', 'long', answer(1024 * 1024))).result.length, 1024 * 1024)
    await assert.rejects(answers.once('long', 'long', rerun), { status: 409 })
  })

  test('when the stored answer for an Idempotency-Key is evicted, its memory is freed', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const answers = new Answers()
    const first = new WeakRef(await answers.once('0', '0', answer(200 * 1024)))
    for (const key of ['1', '2']) await answers.once(key, key, answer(200 * 1024))
    await new Promise(setImmediate)
    collect()
    assert.equal(first.deref(), undefined)
  })

  test('if 256 commands with an Idempotency-Key run in a sandbox, the next such command is refused with 429', async () => {
    const answers = new Answers()
    const going = Promise.withResolvers<{ exitCode: number; result: string }>()
    for (let key = 0; key < 256; key++) answers.once(String(key), key, () => going.promise)
    assert.throws(() => answers.once('more', 0, answer(0)), { status: 429 })
    going.reject(new Problem('bad_gateway'))
    await assert.rejects(answers.once('0', 0, answer(0)))
    assert.equal(answers.isEmpty, true)
  })
})

suite('POST /process/execute: cwd', () => {
  test('POST /process/execute runs the command in the user’s home if cwd is missing, null or empty', async () => {
    await using box = await startToolbox()
    for (const cwd of [undefined, null, '']) {
      assert.equal((await box.post(execute, { command: 'pwd -P', cwd })).body.result, `${homedir()}\n`)
    }
  })

  test('POST /process/execute uses an absolute cwd unchanged', async () => {
    await using box = await startToolbox()
    assert.equal((await box.post(execute, { command: 'pwd', cwd: box.directory })).body.result, `${box.directory}\n`)
  })

  test('POST /process/execute resolves a relative cwd from the user’s home', async () => {
    await using box = await startToolbox()
    mkdirSync(join(box.directory, 'deep'))
    const cwd = relative(homedir(), join(box.directory, 'deep'))
    assert.doesNotMatch(cwd, /^\//)
    const { body } = await box.post(execute, { command: 'pwd -P', cwd })
    assert.equal(body.result, `${box.directory}/deep\n`)
  })

  test('POST /process/execute answers 400 for a cwd that cannot be used, and says why', async () => {
    await using box = await startToolbox()
    writeFileSync(join(box.directory, 'file'), '')
    const ask = (cwd: string) => box.post(execute, { command: 'ls', cwd })
    const missing = await ask('/does/not/exist')
    assert.deepEqual([missing.status, missing.body.code], [400, 'BAD_REQUEST'])
    assert.match(missing.body.message, /"\/does\/not\/exist" cannot be used: it does not exist/)
    assert.match((await ask(join(box.directory, 'file'))).body.message, /it is not a directory/)
    assert.equal((await ask(`/${'x'.repeat(5000)}`)).status, 400)
    assert.equal((await ask('/proc/self/fd/3')).status, 400)
  })
})

suite('POST /process/execute: user and environment', () => {
  test('POST /process/execute answers 400 if the sandbox’s user does not exist in its image', async () => {
    await using box = await startToolbox({ user: 'nobody-of-that-name' })
    const { status, body } = await box.post(execute, { command: 'ls' })
    assert.equal(status, 400)
    assert.match(body.message, /"nobody-of-that-name" does not exist/)
  })

  test('a command gets the sandbox’s variables; the call’s variables override the sandbox’s variables', async () => {
    await using box = await startToolbox({ env: { PATH: '/usr/bin:/bin', A: 'sandbox', B: 'sandbox' } })
    const { body } = await box.post(execute, { command: 'echo "$A $B $C"', envs: { B: 'call', C: 'a "b" $c\nd' } })
    assert.equal(body.result, 'sandbox call a "b" $c\nd\n')
  })

  test('a command’s environment has the ids of the sandbox, and the telemetry endpoint if one is set', async () => {
    await using box = await startToolbox({ otelEndpoint: 'http://collector.test:4318' })
    const { body } = await box.post(execute, { command: 'env | grep ^DAYTONA_ | sort' })
    assert.deepEqual(body.result.trimEnd().split('\n'), [
      'DAYTONA_ORGANIZATION_ID=org-1',
      'DAYTONA_OTEL_ENDPOINT=http://collector.test:4318',
      'DAYTONA_REGION_ID=region-1',
      'DAYTONA_SANDBOX_ID=box-1',
      'DAYTONA_SANDBOX_SNAPSHOT=snapshot-1',
      `DAYTONA_SANDBOX_USER=${box.assignment.user}`,
    ])
  })

  test('POST /process/execute answers 400 for an invalid name of a variable', async () => {
    await using box = await startToolbox()
    for (const name of ['', '1A', 'A-B', 'A=B', 'A B', 'é']) {
      const { status, body } = await box.post(execute, { command: 'ls', envs: { [name]: 'x' } })
      assert.equal(status, 400, name)
      assert.match(body.message, /environment variable/)
    }
  })

  test('POST /process/execute answers 400 for an environment that is too large for the kernel', async () => {
    await using box = await startToolbox()
    const one = await box.post(execute, { command: 'ls', envs: { A: 'x'.repeat(200_000) } })
    const all = await box.post(execute, { command: 'ls', envs: { A: 'x'.repeat(7_000_000), B: 'x'.repeat(1_300_000) } })
    assert.deepEqual([one.status, all.status], [400, 400])
    assert.match(one.body.message, /larger than the kernel accepts/)
  })
})

suite('POST /process/execute: bad bodies', () => {
  test('POST /process/execute answers 400 for a blank command', async () => {
    await using box = await startToolbox()
    for (const command of ['', '  ', '\n\t']) assert.equal((await box.post(execute, { command })).status, 400)
  })

  test('POST /process/execute answers 400 INVALID_REQUEST_BODY for invalid JSON and for an empty body', async () => {
    await using box = await startToolbox()
    for (const text of ['{"command":', '']) {
      const { status, body } = await box.post(execute, text)
      assert.deepEqual([status, body.code, body.source], [400, 'INVALID_REQUEST_BODY', 'DAYTONA_DAEMON'])
    }
  })

  test('POST /process/execute answers 400 for values of wrong types', async () => {
    await using box = await startToolbox()
    for (const body of [{}, { command: 5 }, { command: 'ls', cwd: 5 }, { command: 'ls', envs: ['A'] }, [], '"ls"']) {
      assert.equal((await box.post(execute, body)).status, 400, JSON.stringify(body))
    }
    assert.equal((await box.post(execute, { command: 'ls', envs: { A: 5 } })).status, 400)
    assert.equal((await box.post(execute, { command: 'l\0s' })).status, 400)
  })
})

suite('POST /process/execute for a sandbox that is missing or cannot run commands', () => {
  test('POST /process/execute answers 404 for a sandbox not on this host, 409 if the sandbox is not started', async () => {
    await using box = await startToolbox()
    assert.equal((await box.post('/toolbox/box-2/process/execute', { command: 'ls' })).status, 404)
    box.held.status = 'stopped'
    assert.equal((await box.post(execute, { command: 'ls' })).status, 409)
  })

  test('POST /process/execute answers 409 if the sandbox’s agent has ended', async () => {
    await using box = await startToolbox()
    await box.native.agent.shutdown(100)
    assert.equal((await box.post(execute, { command: 'ls' })).status, 409)
  })
})
