import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { agentAt } from '../agent/agent.ts'
import { until } from '../agent/testing/native-agent.ts'
import { type Reply, startToolbox, type Toolbox } from '../testing/toolbox.ts'
import { follow, refusalOf } from './testing/follow.ts'

suite('sessions', () => {
  let box: Toolbox
  let count = 0
  before(async () => {
    box = await startToolbox()
  })
  after(async () => {
    await box[Symbol.asyncDispose]()
  })

  const open = async (): Promise<string> => {
    const sessionId = `s${++count}`
    const { status, body } = await box.post('/process/session', { sessionId })
    assert.deepEqual([status, body], [201, { sessionId, commands: [] }])
    return sessionId
  }
  const exec = (id: string, command: string, more: object = {}): Promise<Reply> =>
    box.post(`/process/session/${id}/exec`, { command, ...more })
  const execAsync = async (id: string, command: string, more: object = {}): Promise<string> => {
    const { status, body } = await exec(id, command, { runAsync: true, ...more })
    assert.equal(status, 202)
    assert.deepEqual(Object.keys(body), ['cmdId'])
    return body.cmdId
  }
  const commandAt = (id: string, command: string) => `/process/session/${id}/command/${command}`
  const input = (id: string, command: string, data: string) => box.post(`${commandAt(id, command)}/input`, { data })
  const ended = async (id: string, command: string): Promise<number> => {
    await until(async () => (await box.get(commandAt(id, command))).body.exitCode !== undefined, 'the end')
    return (await box.get(commandAt(id, command))).body.exitCode
  }
  const seen = (id: string, command: string, wanted: RegExp) =>
    until(async () => wanted.test((await box.get(`${commandAt(id, command)}/logs`)).body.output), String(wanted))
  const codeOf = ({ status, body }: Reply) => [status, body.code]

  suite('POST /process/session, GET /process/session, GET /process/session/{sessionId}, DELETE /process/session/{sessionId}', () => {
    test('POST /process/session makes an empty session, which is listed until it is deleted', async () => {
      const id = await open()
      assert.deepEqual((await box.get(`/process/session/${id}`)).body, { sessionId: id, commands: [] })
      const { body } = await box.get('/process/session')
      assert.ok(Array.isArray(body) && body.some(({ sessionId }) => sessionId === id))
      assert.deepEqual(await box.delete(`/process/session/${id}`), { status: 204, body: undefined })
      assert.equal((await box.get(`/process/session/${id}`)).status, 404)
      assert.ok((await box.get('/process/session')).body.every((one: { sessionId: string }) => one.sessionId !== id))
      assert.equal((await box.delete(`/process/session/${id}`)).status, 404)
    })

    test('POST /process/session answers 400 for an invalid or reserved session id, and 409 for an id in use', async () => {
      for (const sessionId of ['', '  ', 'x'.repeat(256), 'a/b', '..', 'entrypoint', 'a\nb', 7, undefined]) {
        assert.equal((await box.post('/process/session', { sessionId })).status, 400, String(sessionId))
      }
      const id = await open()
      assert.deepEqual(codeOf(await box.post('/process/session', { sessionId: id })), [409, 'CONFLICT'])
    })

    test('a session’s id may have letters of any script', async () => {
      const sessionId = 'große 部屋 %2F?'
      assert.equal((await box.post('/process/session', { sessionId })).status, 201)
      const path = `/process/session/${encodeURIComponent(sessionId)}`
      assert.equal((await box.post(`${path}/exec`, { command: 'echo here' })).body.stdout, 'here\n')
      assert.equal((await box.delete(path)).status, 204)
    })

    test('the shell of a session has the sandbox’s environment and user, and starts in the user’s home', async () => {
      const id = await open()
      const { body } = await exec(id, 'echo $DAYTONA_SANDBOX_ID; id -un; [ "$PWD" = ~ ] && echo home')
      assert.equal(body.stdout, `box-1\n${box.assignment.user}\nhome\n`)
    })

    test('DELETE /process/session/{sessionId} ends the running command, and closes the sockets that follow it', async () => {
      const id = await open()
      const command = await execAsync(id, 'echo ready; sleep 1000')
      await seen(id, command, /ready/)
      const socket = box.socket(`${commandAt(id, command)}/logs?follow=true`)
      const following = follow(socket)
      await once(socket, 'message')
      assert.equal((await box.delete(`/process/session/${id}`)).status, 204)
      const { stdout, code } = await following
      assert.deepEqual([stdout.toString(), code], ['ready\n', 1000])
    })
  })

  suite('POST /process/session/{sessionId}/exec', () => {
    test('POST /process/session/{sessionId}/exec answers 200 with stdout, stderr and the exit code', async () => {
      const id = await open()
      const { status, body } = await exec(id, 'echo out; echo err >&2; (exit 3)')
      const { cmdId, ...rest } = body
      assert.deepEqual([status, rest.stdout, rest.stderr, rest.exitCode], [200, 'out\n', 'err\n', 3])
      assert.equal(rest.output.length, 'out\nerr\n'.length)
      assert.equal(rest.truncated, undefined)
      assert.deepEqual((await box.get(commandAt(id, cmdId))).body, {
        ...{ id: cmdId, command: 'echo out; echo err >&2; (exit 3)', exitCode: 3 },
      })
    })

    test('a session command repeated with its Idempotency-Key gets the first answer, or 422 for a changed text', async () => {
      const id = await open()
      const key = { 'idempotency-key': 'only once' }
      const send = (body: object, headers = { 'idempotency-key': 'only-once' }) =>
        box.post(`/process/session/${id}/exec`, body, headers)
      const [one, other] = await Promise.all(
        [1, 2].map(() => send({ command: 'count=x$count; sleep 0.1; echo $count' })),
      )
      assert.deepEqual(one, other)
      assert.equal(one?.body.stdout, 'x\n')
      const background = { command: 'count=x$count', runAsync: true }
      const started = [
        await send(background, { 'idempotency-key': 'b' }),
        await send(background, { 'idempotency-key': 'b' }),
      ]
      assert.equal(started[0]?.status, 202)
      assert.deepEqual(started[0], started[1])
      assert.equal((await exec(id, 'echo $count')).body.stdout, 'xx\n')
      assert.equal((await send({ command: 'true' })).status, 422)
      assert.equal((await send({ command: 'true' }, key)).status, 400)
      const elsewhere = await open()
      const there = await box.post(
        `/process/session/${elsewhere}/exec`,
        { command: 'echo new' },
        { 'idempotency-key': 'b' },
      )
      assert.equal(there.body.stdout, 'new\n')
    })

    test('a session’s shell keeps its directory, variables and functions from one command to the next', async () => {
      const id = await open()
      await exec(id, 'cd /tmp; X=1; export Y=2; f() { echo "f$1"; }')
      assert.equal((await exec(id, 'pwd; echo $X; sh -c "echo \\$Y"; f 3')).body.stdout, '/tmp\n1\n2\nf3\n')
    })

    test('a session command without runAsync has no input, and sending input to it answers 409', async () => {
      const id = await open()
      assert.equal((await exec(id, 'cat; echo end')).body.stdout, 'end\n')
      const busy = exec(id, 'sleep 1000')
      await until(async () => (await box.get(`/process/session/${id}`)).body.commands.length === 2, 'it runs')
      const { commands } = (await box.get(`/process/session/${id}`)).body
      assert.equal((await input(id, commands[1].id, 'x')).status, 409)
      await box.delete(`/process/session/${id}`)
      assert.equal((await busy).body.exitCode, 143)
    })

    test('a session’s commands run in order: a command without `runAsync` waits for earlier commands', async () => {
      const id = await open()
      const first = await execAsync(id, 'read x; echo $x > order; echo 1 >> order')
      const second = await execAsync(id, 'echo 2 >> order')
      const third = exec(id, 'cat order; rm order')
      assert.equal((await box.get(commandAt(id, second))).body.exitCode, undefined)
      await input(id, first, '0')
      assert.equal((await third).body.stdout, '0\n1\n2\n')
      const { commands } = (await box.get(`/process/session/${id}`)).body
      assert.deepEqual(
        commands.map(({ exitCode }: { exitCode: number }) => exitCode),
        [0, 0, 0],
      )
      assert.deepEqual(
        commands.slice(0, 2).map(({ id }: { id: string }) => id),
        [first, second],
      )
    })

    test('a session command’s call accepts `async`, the older name of `runAsync`, and treats null as absent', async () => {
      const id = await open()
      assert.equal((await exec(id, 'true', { async: true })).status, 202)
      assert.equal((await exec(id, 'true', { runAsync: null, async: null, suppressInputEcho: null })).status, 200)
    })

    test('after `exit N` a session’s command has exit code N, and further commands answer 410', async () => {
      const id = await open()
      const { status, body } = await exec(id, 'echo bye; exit 5')
      assert.deepEqual([status, body.exitCode, body.stdout], [200, 5, 'bye\n'])
      assert.deepEqual(codeOf(await exec(id, 'echo more')), [410, 'SESSION_ENDED'])
      assert.equal((await box.get(`${commandAt(id, body.cmdId)}/logs`)).body.stdout, 'bye\n')
      assert.equal((await box.get(`/process/session/${id}`)).body.commands.length, 1)
      assert.equal((await box.delete(`/process/session/${id}`)).status, 204)
    })

    test('if signal N kills a session’s shell, its command has exit code 128 + N, and no queued command runs', async () => {
      const id = await open()
      const killed = await execAsync(id, 'read x; kill -9 $$')
      const [waiting, waited] = [await execAsync(id, 'echo never'), exec(id, 'echo never')]
      await until(async () => (await box.get(`/process/session/${id}`)).body.commands.length === 3, 'all of them')
      await input(id, killed, '')
      assert.deepEqual(codeOf(await waited), [410, 'SESSION_ENDED'])
      assert.equal(await ended(id, killed), 137)
      assert.equal(await ended(id, waiting), -1)
      assert.match((await box.get(`${commandAt(id, waiting)}/logs`)).body.stderr, /session ended before/)
    })

    for (const text of ['echo "open', "echo 'open", 'if true; then', ')', 'cat <<END\nopen', 'echo $(']) {
      test(`the command ${JSON.stringify(text)} neither hangs nor ends its session`, async () => {
        const id = await open()
        assert.equal((await exec(id, text)).status, 200)
        assert.equal((await exec(id, 'echo on')).body.stdout, 'on\n')
      })
    }

    test('a background child that keeps the pipes open does not delay the answer of a session command', async () => {
      const id = await open()
      assert.equal((await exec(id, 'sleep 1000 & echo started')).body.stdout, 'started\n')
      assert.equal((await exec(id, 'echo next')).body.stdout, 'next\n')
    })

    test('invalid UTF-8 in the output of a session command becomes U+FFFD', async () => {
      const id = await open()
      assert.equal((await exec(id, "printf 'a\\377b\\0c'")).body.stdout, 'a\uFFFDb\0c')
    })

    test('output of a session command above its limit is cut to beginning and end, with a line about the gap', async () => {
      const id = await open()
      const { body } = await exec(id, "echo BEGIN; head -c 40000000 /dev/zero | tr '\\0' x; echo; echo the-end")
      assert.deepEqual([body.exitCode, body.truncated], [0, true])
      assert.match(body.stdout, /\[output truncated: \d+ /)
      assert.ok(body.stdout.length < 17 * 1024 * 1024)
      const { body: logs } = await box.get(`${commandAt(id, body.cmdId)}/logs`)
      assert.equal(logs.truncated, true)
      const whole = /^BEGIN\nx+\n\[output truncated: \d+ bytes of both streams were left out here\]\nx+\nthe-end\n$/
      assert.match(logs.stdout, whole)
      const lost = Number(/truncated: (\d+)/.exec(logs.stdout)?.[1])
      assert.equal(lost + [...logs.stdout].filter((letter) => letter === 'x').length, 40_000_000)
    })

    test('if the output of a session command is too long, the cut never splits a character', async () => {
      const id = await open()
      const { body } = await exec(id, "yes 😀 | tr -d '\\n' | head -c 40000000; printf 'the-end'")
      const { body: logs } = await box.get(`${commandAt(id, body.cmdId)}/logs`)
      for (const text of [logs.stdout, logs.output]) {
        assert.match(text, /^(?:😀)+\n\[output truncated: [^\]]+\]\n(?:😀)+the-end$/u)
      }
    })

    test('if the caller of a session command closes its connection, command and session continue', async () => {
      const id = await open()
      const call = box.call(`/process/session/${id}/exec`, { command: 'mkfifo gone; cat gone; echo whole; rm gone' })
      call.on('error', () => undefined)
      await until(async () => (await box.get(`/process/session/${id}`)).body.commands.length === 1, 'it runs')
      call.destroy()
      const [command] = (await box.get(`/process/session/${id}`)).body.commands
      const other = await open()
      await until(async () => (await exec(other, '[ -p gone ]')).body.exitCode === 0, 'the pipe')
      await exec(other, 'echo by another > gone')
      assert.equal(await ended(id, command.id), 0)
      const { body } = await box.get(`${commandAt(id, command.id)}/logs`)
      assert.equal(body.stdout, 'by another\nwhole\n')
      assert.equal((await exec(id, 'echo on')).body.stdout, 'on\n')
    })

    test('a call to run a session command answers 400 without a command, 413 above 1 MiB, 404 for no session', async () => {
      const id = await open()
      for (const body of [{}, { command: '' }, { command: ' \n' }, { command: 'a\0b' }, { command: 7 }, '{', '[]']) {
        assert.equal((await box.post(`/process/session/${id}/exec`, body)).status, 400, JSON.stringify(body))
      }
      assert.equal((await exec(id, 'x'.repeat(1024 * 1024 + 1))).status, 413)
      assert.equal((await exec('unknown', 'true')).status, 404)
    })

    test('a session command of 1 MiB runs, and is shown completely', async () => {
      const id = await open()
      const command = `: ${'y'.repeat(1024 * 1024 - 20)}; echo $?`
      const { body } = await exec(id, command)
      assert.equal(body.stdout, '0\n')
      assert.equal((await box.get(commandAt(id, body.cmdId))).body.command, command)
      const [listed] = (await box.get(`/process/session/${id}`)).body.commands
      assert.equal(listed.command, `${command.slice(0, 4096)}…`)
    })

    test('100 sessions at the same time each run their own commands', async () => {
      const ids = await Promise.all(Array.from({ length: 100 }, open))
      await Promise.all(ids.map((id) => exec(id, `N=${id}`)))
      const replies = await Promise.all(ids.map((id) => exec(id, 'echo $N')))
      assert.deepEqual(
        replies.map(({ body }) => body.stdout),
        ids.map((id) => `${id}\n`),
      )
      await Promise.all(ids.map((id) => box.delete(`/process/session/${id}`)))
    })
  })

  suite('POST /process/session/{sessionId}/command/{commandId}/input', () => {
    test('input sent to a session command gets a missing newline added, and appears in the log', async () => {
      const id = await open()
      const command = await execAsync(id, 'read a; read b; echo "$a+$b"')
      assert.deepEqual(await input(id, command, 'one'), { status: 204, body: undefined })
      assert.equal((await input(id, command, 'two\n')).status, 204)
      assert.equal(await ended(id, command), 0)
      const { body } = await box.get(`${commandAt(id, command)}/logs`)
      assert.deepEqual(body, { output: 'one\ntwo\none+two\n', stdout: 'one\ntwo\none+two\n', stderr: '' })
    })

    test('with `suppressInputEcho`, the input of a session command does not appear in the command’s log', async () => {
      const id = await open()
      const command = await execAsync(id, 'read a; echo got', { suppressInputEcho: true })
      await input(id, command, 'secret')
      await ended(id, command)
      assert.equal((await box.get(`${commandAt(id, command)}/logs`)).body.output, 'got\n')
    })

    test('sending input answers 410 for an ended session command, 404 for an unknown command, 400 without data', async () => {
      const id = await open()
      const command = await execAsync(id, 'true')
      await ended(id, command)
      assert.deepEqual(codeOf(await input(id, command, 'x')), [410, 'COMMAND_ALREADY_COMPLETED'])
      assert.deepEqual(codeOf(await input(id, 'unknown', 'x')), [404, 'PROCESS_NOT_FOUND'])
      assert.equal((await input('unknown', command, 'x')).status, 404)
      assert.equal((await box.post(`${commandAt(id, command)}/input`, {})).status, 400)
      await exec(id, 'exit')
      assert.equal((await input(id, command, 'x')).status, 410)
    })
  })

  suite('GET /process/session/{sessionId}/command/{commandId}, GET /process/session/{sessionId}/command/{commandId}/logs', () => {
    test('while a session command runs, it has no exit code, and its logs are the output so far', async () => {
      const id = await open()
      const command = await execAsync(id, 'echo so far; read x')
      await seen(id, command, /so far/)
      const text = 'echo so far; read x'
      assert.deepEqual((await box.get(commandAt(id, command))).body, { id: command, command: text })
      const { status, body } = await box.get(`${commandAt(id, command)}/logs`)
      assert.deepEqual([status, body], [200, { output: 'so far\n', stdout: 'so far\n', stderr: '' }])
    })

    test('SDKs before 0.167 get a session command’s output as text with stream markers, all others as JSON', async () => {
      const id = await open()
      const marked = '\u0001\u0001\u0001one\n\u0002\u0002\u0002two é\n\u0001\u0001\u0001three\n'
      // The command writes each line only after the toolbox has the line before, so that their order is certain.
      const [first, second] = ['first', 'second'].map((name) => join(box.directory, name)) as [string, string]
      const waitFor = (file: string) => `until [ -e ${file} ]; do sleep 0.01; done`
      const line = `echo one; ${waitFor(first)}; echo two é >&2; ${waitFor(second)}; echo three`
      const asSdk = (version: string) => ({ 'x-daytona-sdk-version': version })
      const exec = `/process/session/${id}/exec`
      const running = box.post(exec, { command: line }, asSdk('0.143.0'))
      const ofSession = async () => (await box.get(`/process/session/${id}`)).body.commands
      await until(async () => (await ofSession()).length > 0, 'the command has begun')
      const [{ id: command }] = await ofSession()
      await seen(id, command, /one/)
      writeFileSync(first, '')
      await seen(id, command, /two/)
      writeFileSync(second, '')
      const ran = await running
      // Old SDKs separate stdout and stderr by the markers in `output`, and in the logs that are read below.
      assert.deepEqual([ran.body.output, ran.body.stdout], [marked, 'one\nthree\n'])
      assert.equal((await box.post(exec, { command: 'echo x' })).body.output, 'x\n')
      const logs = `${commandAt(id, ran.body.cmdId)}/logs`
      for (const version of ['0.143.0', '0.166.9', 'v0.20.1']) {
        assert.equal((await box.get(logs, asSdk(version))).body, marked, version)
      }
      // An SDK that sends no version is an old SDK.
      assert.equal((await box.get(logs, { 'x-daytona-source': 'sdk-python' })).body, marked)
      for (const version of ['0.167.0', '0.216.0', '1.0.0', '0.0.0-dev', 'x']) {
        assert.equal((await box.get(logs, asSdk(version))).body.stdout, 'one\nthree\n', version)
      }
      assert.equal((await box.get(logs)).body.output, 'one\ntwo é\nthree\n')
    })

    test('calls about an unknown session or an unknown session command answer 404', async () => {
      const id = await open()
      assert.deepEqual(codeOf(await box.get(commandAt(id, 'none'))), [404, 'PROCESS_NOT_FOUND'])
      assert.equal((await box.get(`${commandAt(id, 'none')}/logs`)).status, 404)
      assert.equal((await box.get(commandAt('none', 'none'))).status, 404)
    })

    test('a gate finds the sessions that another gate made, because all their state is in the sandbox', async () => {
      const id = await open()
      const command = await execAsync(id, 'echo before; read x; echo after')
      await seen(id, command, /before/)
      const found = await agentAt(box.native.socketPath).sessions.get(id)
      assert.deepEqual([found.commands[0]!.id, found.commands[0]!.state], [command, 'running'])
    })
  })

  suite('GET /process/session/{sessionId}/command/{commandId}/logs as a WebSocket', () => {
    const logs = (id: string, command: string, query = '?follow=true') =>
      box.socket(`${commandAt(id, command)}/logs${query}`)

    test('a log’s WebSocket sends old, then new output, marked as stdout or stderr, and closes with 1000', async () => {
      const id = await open()
      const command = await execAsync(id, 'echo one; echo err >&2; read x; echo two', { suppressInputEcho: true })
      await seen(id, command, /one\n[\s\S]*err\n|err\n[\s\S]*one\n/)
      const socket = logs(id, command)
      const following = follow(socket)
      await once(socket, 'message')
      await input(id, command, '')
      const { stdout, stderr, code, frames } = await following
      assert.deepEqual([stdout.toString(), stderr.toString(), code], ['one\ntwo\n', 'err\n', 1000])
      for (const frame of frames) assert.ok(['010101', '020202'].includes(frame.subarray(0, 3).toString('hex')))
    })

    test('a log’s WebSocket without `follow`, or of an ended command, sends the output so far and closes', async () => {
      const id = await open()
      const { body } = await exec(id, 'echo all')
      for (const query of ['', '?follow=true', '?follow=false']) {
        const { stdout, code } = await follow(logs(id, body.cmdId, query))
        assert.deepEqual([stdout.toString(), code], ['all\n', 1000])
      }
      const running = await execAsync(id, 'echo now; read x')
      await seen(id, running, /now/)
      const { stdout, code } = await follow(logs(id, running, ''))
      assert.deepEqual([stdout.toString(), code], ['now\n', 1000])
    })

    test('a log’s WebSocket is refused with 404 for an unknown command, and with 400 for an invalid `follow`', async () => {
      const id = await open()
      assert.equal(await refusalOf(logs(id, 'none')), 404)
      assert.equal(await refusalOf(logs('none', 'none')), 404)
      assert.equal(await refusalOf(logs('none', 'none', '?follow=maybe')), 400)
    })

    test('a WebSocket of a session command’s log sends bytes of every value unchanged', async () => {
      const id = await open()
      const command = await execAsync(id, "printf '\\377\\000\\200'; head -c 100000 /dev/zero | tr '\\0' '\\203'")
      const { stdout, code } = await follow(logs(id, command))
      assert.deepEqual([stdout.length, code], [100_003, 1000])
      assert.ok(stdout.equals(Buffer.concat([Buffer.of(0xff, 0, 0x80), Buffer.alloc(100_000, 0x83)])))
    })

    test('a WebSocket of a session command’s log sends messages that are small enough for the SDK', async () => {
      const id = await open()
      const { body } = await exec(id, "head -c 3000000 /dev/zero | tr '\\0' x; echo end >&2")
      const { stdout, stderr, frames } = await follow(logs(id, body.cmdId))
      assert.deepEqual([stdout.length, stderr.toString()], [3_000_000, 'end\n'])
      assert.ok(Math.max(...frames.map(({ length }) => length)) <= 33 * 1024)
    })

    test('a slow client of a log’s WebSocket delays no other call, and gets the number of missed bytes', async () => {
      const id = await open()
      const command = await execAsync(id, 'read x; seq 1 9000000 | head -c 60000000; echo; echo the-end')
      const socket = logs(id, command)
      const following = follow(socket)
      await once(socket, 'open')
      socket.pause()
      await input(id, command, '')
      assert.equal(await ended(id, command), 0)
      socket.resume()
      const { stdout, stderr, code } = await following
      assert.equal(code, 1000)
      assert.match(stderr.toString(), /\[output truncated: \d+ bytes/)
      const lost = [...stderr.toString().matchAll(/truncated: (\d+)/g)].reduce(
        (sum, [, bytes]) => sum + Number(bytes),
        0,
      )
      // The sum includes the input line, because input is repeated in the log.
      assert.equal(stdout.length + lost, '\n'.length + 60_000_000 + '\nthe-end\n'.length)
      assert.ok(stdout.toString('latin1').endsWith('\nthe-end\n'))
    })

    test('100 WebSockets of busy commands’ logs need little memory, even if their clients do not read', async () => {
      const resident = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))![1]) / 1024
      const ids = await Promise.all(Array.from({ length: 100 }, open))
      const commands = await Promise.all(ids.map((id) => execAsync(id, 'head -c 3000000 /dev/zero; echo done')))
      const sockets = await Promise.all(
        ids.map(async (id, i) => {
          const socket = logs(id, commands[i]!)
          await once(socket, 'open')
          socket.pause()
          return socket
        }),
      )
      const before = resident()
      await Promise.all(ids.map((id, i) => ended(id, commands[i]!)))
      // In this test one process is both reader and gate, so the measured memory includes both sides of every socket.
      assert.ok(resident() - before < 150, `grew by ${Math.round(resident() - before)} MiB`)
      for (const socket of sockets) socket.terminate()
      await Promise.all(ids.map((id) => box.delete(`/process/session/${id}`)))
    })
  })
})
