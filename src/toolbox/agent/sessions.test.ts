import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { agentAt } from './agent.ts'
import { NativeAgent, until } from './testing/native-agent.ts'
import { queue, read, run, spec, untilSeen } from './testing/session-commands.ts'

for (const shell of ['bash', 'sh'] as const) {
  suite(`sessions of ${shell}`, () => {
    test('a session keeps its directory, variables, functions and options from one command to the next', async () => {
      await using native = await NativeAgent.start()
      const { sessions } = native.agent
      await sessions.open(spec('s', { shell, env: { GIVEN: 'yes' } }))
      assert.deepEqual(await run(sessions, 's', 'pwd; echo $GIVEN'), ['/\nyes\n', '', 0])
      assert.deepEqual(await run(sessions, 's', `cd ${native.directory}; X='a b'; f() { echo "f $1"; }`), ['', '', 0])
      assert.deepEqual(await run(sessions, 's', 'pwd; echo "$X"; f 1'), [`${native.directory}\na b\nf 1\n`, '', 0])
      assert.deepEqual(await run(sessions, 's', 'export Y=1; set -u'), ['', '', 0])
      assert.deepEqual((await run(sessions, 's', 'sh -c "echo \\$Y"'))[0], '1\n')
    })

    test('commands of a session have separate streams and exit codes; a failing command keeps the session open', async () => {
      await using native = await NativeAgent.start()
      const { sessions } = native.agent
      await sessions.open(spec('s', { shell }))
      assert.deepEqual(await run(sessions, 's', 'echo out; echo err >&2; (exit 3)'), ['out\n', 'err\n', 3])
      const [out, err, code] = await run(sessions, 's', 'no-such-command')
      assert.deepEqual([out, code], ['', 127])
      assert.match(err, /no-such-command: (command )?not found\n$/)
      assert.equal((await run(sessions, 's', 'sh -c "kill -9 \\$\\$"; echo $?'))[0], '137\n')
    })

    for (const [what, text] of [
      ['a quote that is not closed', 'echo "open'],
      ['a single quote that is not closed', "echo 'open"],
      ['a document without its end', 'if true; then echo x'],
      ['a parenthesis too many', 'echo a; )'],
      ['a backslash at the end', 'false; nothing-there \\'],
    ] as const) {
      test(`in a session, a command with ${what} fails, and later commands still run`, async () => {
        await using native = await NativeAgent.start()
        const { sessions } = native.agent
        await sessions.open(spec('s', { shell }))
        await run(sessions, 's', 'KEPT=1')
        const [, err, code] = await run(sessions, 's', text)
        assert.ok(code !== 0 && err !== '', `${code} ${err}`)
        assert.deepEqual(await run(sessions, 's', 'echo $KEPT'), ['1\n', '', 0])
      })
    }

    test('a session runs command texts of every kind unchanged: several lines, quotes, here-documents, 1 MiB', async () => {
      await using native = await NativeAgent.start()
      const { sessions } = native.agent
      await sessions.open(spec('s', { shell }))
      assert.deepEqual(await run(sessions, 's', `echo "it's" 'a "b"' # a comment`), [`it's a "b"\n`, '', 0])
      assert.deepEqual(await run(sessions, 's', "cat <<'END'\n$x 'y'\nEND\necho after"), ["$x 'y'\nafter\n", '', 0])
      assert.deepEqual(await run(sessions, 's', 'exit_later() {\n  echo one\n}\n\nexit_later\n'), ['one\n', '', 0])
      const long = `: '${'x'.repeat(1024 * 1024 - 20)}'; echo $?`
      const id = await queue(sessions, 's', long)
      assert.equal((await read(sessions.attach('s', id, 0))).stdout, '0\n')
      assert.equal((await sessions.command('s', id)).text, long)
      const listed = (await sessions.get('s')).commands.at(-1)!
      assert.deepEqual([listed.text, listed.isWholeText], [long.slice(0, 4096), false])
    })

    test('`exit N` ends a session with exit code N; queued commands never run, and new commands are refused', async () => {
      await using native = await NativeAgent.start()
      const { sessions } = native.agent
      await sessions.open(spec('s', { shell }))
      const ids = [await queue(sessions, 's', 'read x; exit 7', true), await queue(sessions, 's', 'echo never')]
      await sessions.input('s', ids[0]!, Buffer.from('\n'))
      assert.deepEqual((await read(sessions.attach('s', ids[0]!, 0))).end, {
        type: 'exit',
        end: { exitCode: 7, signal: null },
      })
      const never = await read(sessions.attach('s', ids[1]!, 0))
      assert.deepEqual([never.stdout, never.end], ['', { type: 'exit', end: null }])
      assert.match(never.stderr, /session ended before/)
      await assert.rejects(queue(sessions, 's', 'echo late'), { stage: 'job', errno: 'EPIPE' })
      const session = await sessions.get('s')
      assert.deepEqual([session.state, session.exit], ['ended', { exitCode: 7, signal: null }])
      assert.deepEqual(
        session.commands.map(({ state, end }) => [state, end?.exitCode]),
        [
          ['ended', 7],
          ['ended', undefined],
        ],
      )
    })

    test('if a session’s shell is killed by signal N, its running command has the exit code 128 + N', async () => {
      await using native = await NativeAgent.start()
      const { sessions } = native.agent
      for (const signal of [9, 15]) {
        await sessions.open(spec(`s${signal}`, { shell }))
        const { end } = await read(
          sessions.attach(
            `s${signal}`,
            await queue(sessions, `s${signal}`, `echo x; kill -${signal} $$; sleep 1000`),
            0,
          ),
        )
        assert.deepEqual(end, { type: 'exit', end: { exitCode: 128 + signal, signal } })
      }
    })

    test('in a session, a background child does not delay later commands, and writes to its own command’s log', async () => {
      await using native = await NativeAgent.start()
      const { sessions } = native.agent
      const go = `${native.directory}/go`
      await sessions.open(spec('s', { shell }))
      const first = await queue(sessions, 's', `mkfifo ${go}; (read line < ${go}; echo later) & echo now`)
      assert.equal((await read(sessions.attach('s', first, 0))).stdout, 'now\n')
      assert.deepEqual(await run(sessions, 's', 'echo second'), ['second\n', '', 0])
      const third = await queue(sessions, 's', `echo > ${go}; wait; echo third`)
      assert.equal((await read(sessions.attach('s', third, 0))).stdout, 'third\n')
      await until(
        async () => (await read(sessions.attach('s', first, 0))).stdout === 'now\nlater\n',
        'what the child said',
      )
    })

    test('input for a session command reaches only that command, even if sent before the command has started', async () => {
      await using native = await NativeAgent.start()
      const { sessions } = native.agent
      await sessions.open(spec('s', { shell }))
      const first = await queue(sessions, 's', 'read a; echo "1:$a"', true)
      const second = await queue(sessions, 's', 'while read b; do echo "2:$b"; done; echo end', true)
      await sessions.input('s', second, Buffer.from('early\n'))
      await sessions.input('s', first, Buffer.from('one\nnobody reads this\n'))
      assert.equal((await read(sessions.attach('s', first, 0))).stdout, '1:one\n')
      await untilSeen(sessions, 's', second, /2:early\n/)
      await sessions.input('s', second, Buffer.from('late\n'), { close: true })
      assert.equal((await read(sessions.attach('s', second, 0))).stdout, '2:early\n2:late\nend\n')
      assert.deepEqual(await run(sessions, 's', 'cat; echo no input'), ['no input\n', '', 0])
    })

    test('a command of a session has only the descriptors 0 to 2', async () => {
      await using native = await NativeAgent.start()
      const { sessions } = native.agent
      await sessions.open(spec('s', { shell }))
      await run(sessions, 's', 'true')
      const [open] = await run(sessions, 's', 'ls /proc/self/fd | tr "\\n" " "')
      assert.equal(open, '0 1 2 3 ')
    })
  })
}

suite('sessions of the agent', () => {
  test('a session runs its commands one after the other, in order of arrival, and lists their states', async () => {
    await using native = await NativeAgent.start()
    const { sessions } = native.agent
    await sessions.open(spec('s'))
    const ids = [await queue(sessions, 's', 'read x', true)]
    for (let i = 0; i < 20; i++) ids.push(await queue(sessions, 's', `echo ${i} >> ${native.directory}/order`))
    const states = async (): Promise<string[]> => (await sessions.get('s')).commands.map(({ state }) => state)
    await until(async () => (await states())[0] === 'running', 'the first one run')
    assert.deepEqual(await states(), ['running', ...Array(20).fill('waiting')])
    await sessions.input('s', ids[0]!, Buffer.from('\n'))
    const wanted = Array.from({ length: 20 }, (_, i) => `${i}\n`).join('')
    assert.deepEqual(await run(sessions, 's', `cat ${native.directory}/order`), [wanted, '', 0])
    assert.deepEqual(await states(), Array(22).fill('ended'))
    assert.deepEqual(
      (await sessions.get('s')).commands.slice(0, 21).map(({ id }) => id),
      ids,
    )
  })

  test('any client finds a session’s running commands and their output so far, and can send input to them', async () => {
    await using native = await NativeAgent.start()
    await native.agent.sessions.open(spec('über'))
    const id = await queue(native.agent.sessions, 'über', 'echo one; read x; echo "two $x"; exit 4', true)
    await untilSeen(native.agent.sessions, 'über', id, /one/)
    const { sessions } = agentAt(native.socketPath)
    const [found, ...others] = await sessions.list()
    assert.deepEqual(others, [])
    assert.deepEqual(
      [found!.id, found!.state, found!.commands.map(({ id, state, end }) => [id, state, end])],
      ['über', 'running', [[id, 'running', null]]],
    )
    const following = read(sessions.attach('über', id, 4))
    await sessions.input('über', id, Buffer.from('x\n'))
    const { stdout, end } = await following
    assert.deepEqual([stdout, end], ['two x\n', { type: 'exit', end: { exitCode: 4, signal: null } }])
  })

  test('a session command’s output arrives unchanged, whatever bytes it has', async () => {
    await using native = await NativeAgent.start()
    const { sessions } = native.agent
    await sessions.open(spec('s'))
    const every = Buffer.from(Array.from({ length: 256 }, (_, i) => i)).toString('latin1')
    const octal = Array.from({ length: 256 }, (_, i) => `\\${i.toString(8).padStart(3, '0')}`).join('')
    assert.equal((await run(sessions, 's', `printf '${octal}'`))[0], every)
  })

  test('a session command that writes fast is slowed down, so that a client gets most of the output', async () => {
    await using native = await NativeAgent.start('release')
    const { sessions } = native.agent
    await sessions.open(spec('s', { ringBytes: 16 * 1024 * 1024 }))
    const total = 512 * 1024 * 1024
    const id = await queue(sessions, 's', `head -c ${total} /dev/zero`)
    let taken = 0
    let lost = 0
    for await (const event of sessions.attach('s', id, 0)) {
      if (event.type === 'output') taken += event.data.length
      if (event.type === 'truncated') lost += event.lostBytes
    }
    assert.equal(taken + lost, total)
    assert.ok(lost < total / 2, `${lost} bytes were lost`)
  })

  test('large output of a session command is complete and in order, whether a client reads at once or later', async () => {
    await using native = await NativeAgent.start()
    const { sessions } = native.agent
    // The ring buffer is large enough for all output, so no output is lost even on a slow machine.
    await sessions.open(spec('s', { ringBytes: 64 * 1024 * 1024 }))
    const numbers = (from: number, to: number) =>
      Array.from({ length: to - from + 1 }, (_, i) => `${from + i}\n`).join('')
    // `cat` of a file writes large pieces; `seq` writes small pieces.
    const file = `${native.directory}/numbers`
    writeFileSync(file, numbers(1, 3_000_000))
    const text = `cat ${file}; seq 3000001 5000000 >&2; printf between; seq 1 500000 >&2; seq 5000001 6000000`
    const digest = (bytes: string) => createHash('sha256').update(bytes).digest('hex')
    const wanted = {
      stdout: digest(`${numbers(1, 3_000_000)}between${numbers(5_000_001, 6_000_000)}`),
      stderr: digest(numbers(3_000_001, 5_000_000) + numbers(1, 500_000)),
    }
    const id = await queue(sessions, 's', text)
    for (const _ of ['while it writes', 'later']) {
      const heard = { stdout: createHash('sha256'), stderr: createHash('sha256') }
      for await (const event of sessions.attach('s', id, 0)) {
        assert.notEqual(event.type, 'truncated')
        if (event.type === 'output') heard[event.stream].update(event.data)
      }
      assert.deepEqual({ stdout: heard.stdout.digest('hex'), stderr: heard.stderr.digest('hex') }, wanted)
    }
  })

  test('a session command does not wait for a slow client; the client is told how many bytes it missed', async () => {
    await using native = await NativeAgent.start()
    const { sessions } = native.agent
    await sessions.open(spec('s', { ringBytes: 65_536 }))
    const id = await queue(sessions, 's', 'seq 1 2000000 | head -c 8000000; echo; echo the end')
    const slow = sessions.attach('s', id, 0)
    await slow.next()
    assert.deepEqual(await run(sessions, 's', 'echo next'), ['next\n', '', 0])
    const { all, lost } = await read(slow)
    assert.ok(lost > 0 && all.endsWith('\nthe end\n'))
    const again = await read(sessions.attach('s', id, 0))
    assert.deepEqual([again.all.length, again.lost], [65_536, 8_000_009 - 65_536])
  })

  test('input that is sent with `echoInput` is part of the session command’s output', async () => {
    await using native = await NativeAgent.start()
    const { sessions } = native.agent
    await sessions.open(spec('s'))
    await sessions.exec('s', { id: 'c', text: 'read x; echo "got $x"', keepInput: true, echoInput: true })
    await sessions.input('s', 'c', Buffer.from('hello\n'))
    assert.equal((await read(sessions.attach('s', 'c', 0))).stdout, 'hello\ngot hello\n')
  })

  test('input for a session command that reads slowly is buffered up to a limit; more input is refused', async () => {
    await using native = await NativeAgent.start()
    const { sessions } = native.agent
    await sessions.open(spec('s'))
    const id = await queue(sessions, 's', 'read go; wc -c', true)
    const piece = Buffer.alloc(500_000, 'x')
    await sessions.input('s', id, piece)
    await sessions.input('s', id, piece)
    await assert.rejects(sessions.input('s', id, piece), { stage: 'busy' })
    await sessions.input('s', id, Buffer.from('\n123'), { close: true })
    assert.equal((await read(sessions.attach('s', id, 0))).stdout, '3\n')
  })

  test('session calls with an id that is missing or in use, or a shell that cannot start, fail with an errno', async () => {
    await using native = await NativeAgent.start()
    const { sessions } = native.agent
    await sessions.open(spec('s'))
    await assert.rejects(sessions.open(spec('s')), { stage: 'job', errno: 'EEXIST' })
    await assert.rejects(sessions.get('t'), { stage: 'job', errno: 'ENOENT' })
    await assert.rejects(sessions.remove('t'), { stage: 'job', errno: 'ENOENT' })
    await assert.rejects(queue(sessions, 't', 'true'), { stage: 'job', errno: 'ENOENT' })
    await assert.rejects(sessions.command('s', 'c'), { stage: 'job', errno: 'ESRCH' })
    await assert.rejects(read(sessions.attach('s', 'c', 0)), { stage: 'job', errno: 'ESRCH' })
    await assert.rejects(sessions.open(spec('')), { stage: 'protocol' })
    await assert.rejects(sessions.open(spec('x'.repeat(1025))), { stage: 'protocol' })
    await assert.rejects(queue(sessions, 's', 'a\0b'), { stage: 'protocol' })
    await assert.rejects(sessions.open(spec('u', { user: 'nobody-of-that-name' })), {
      name: 'StartFailed',
      stage: 'user',
    })
    await assert.rejects(sessions.open(spec('u', { cwd: '/no/such' })), { name: 'StartFailed', stage: 'cwd' })
    await assert.rejects(sessions.open(spec('u', { env: { PATH: '/no' } })), { name: 'StartFailed', errno: 'ENOENT' })
    const id = await queue(sessions, 's', 'true')
    await read(sessions.attach('s', id, 0))
    await assert.rejects(sessions.input('s', id, Buffer.from('x')), { stage: 'job', errno: 'EALREADY' })
    await assert.rejects(sessions.exec('s', { id, text: 'true', keepInput: false, echoInput: false }), {
      errno: 'EEXIST',
    })
    const deaf = await queue(sessions, 's', 'sleep 1000')
    await assert.rejects(sessions.input('s', deaf, Buffer.from('x')), { stage: 'job', errno: 'ENOTTY' })
    await assert.rejects(read(sessions.attach('s', deaf, 1)), { stage: 'job', errno: 'ERANGE' })
    assert.deepEqual(
      (await sessions.list()).map(({ id }) => id),
      ['s'],
    )
  })
})
