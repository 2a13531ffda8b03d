import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { AgentGone, type CommandSpec, type RunningCommand, StartFailed } from './agent.ts'
import { NativeAgent, until } from './testing/native-agent.ts'

const command = (...argv: string[]): CommandSpec => ({ argv, env: {}, user: userInfo().username, mergeOutput: false })
const shell = (script: string): CommandSpec => command('/bin/sh', '-c', script)

const read = async (running: RunningCommand) => {
  const text = { stdout: '', stderr: '' }
  for await (const { stream, data } of running) text[stream] += data.toString('latin1')
  return { ...text, ...(await running.exit) }
}

/** Whether the process runs: false if it has ended or is a zombie. */
const isAlive = (pid: number): boolean => {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

suite('`exec` of the agent', () => {
  test('`exec` of a command returns standard output, standard error and the exit code separately', async () => {
    await using native = await NativeAgent.start()
    const running = await native.agent.exec(shell('echo out; echo err >&2; exit 7'))
    assert.ok(running.pid > 1)
    assert.deepEqual(await read(running), { stdout: 'out\n', stderr: 'err\n', exitCode: 7, signal: null })
  })

  for (const mergeOutput of [false, true]) {
    test(`a command’s user may open /dev/stdout, /dev/stderr and /dev/stdin, with streams ${mergeOutput ? 'merged' : 'apart'}`, {
      skip: needsRoot,
    }, async () => {
      await using native = await NativeAgent.start()
      const script = 'echo out > /dev/stdout; echo err > /dev/stderr; cat /dev/stdin'
      const spec = { ...shell(script), user: 'nobody', stdin: Buffer.from('in\n'), mergeOutput }
      const { stdout, stderr, exitCode } = await read(await native.agent.exec(spec))
      assert.deepEqual([stdout, stderr, exitCode], mergeOutput ? ['out\nerr\nin\n', '', 0] : ['out\nin\n', 'err\n', 0])
    })
  }

  test('a command’s lines of standard output and standard error keep their order if the streams are merged', async () => {
    await using native = await NativeAgent.start()
    const spec = { ...shell('for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done'), mergeOutput: true }
    const { stdout, stderr } = await read(await native.agent.exec(spec))
    assert.deepEqual([stdout, stderr], ['o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n', ''])
  })

  test('a command that is killed by signal N has the exit code 128 + N', async () => {
    await using native = await NativeAgent.start()
    const { exitCode, signal } = await read(await native.agent.exec(shell('kill -9 $$')))
    assert.deepEqual([exitCode, signal], [137, 9])
  })

  test('a command that is given no input has an empty standard input', async () => {
    await using native = await NativeAgent.start()
    assert.equal((await read(await native.agent.exec(command('cat')))).stdout, '')
  })

  test('a command gets the environment variables of its user; the call’s own variables override these', async () => {
    await using native = await NativeAgent.start()
    const spec = { ...command('env'), env: { PATH: '/usr/bin:/bin', GREETING: 'hé=y' } }
    const { username, homedir, shell: loginShell } = userInfo()
    const { stdout } = await read(await native.agent.exec(spec))
    assert.deepEqual(
      Buffer.from(stdout, 'latin1').toString().trim().split('\n').sort(),
      [
        `HOME=${homedir}`,
        `USER=${username}`,
        `LOGNAME=${username}`,
        `SHELL=${loginShell}`,
        'PATH=/usr/bin:/bin',
        `PWD=${homedir}`,
        'GREETING=hé=y',
      ].sort(),
    )
  })

  test('a command has only the descriptors 0 to 2, a POSIX session of its own, and default signal handling', async () => {
    await using native = await NativeAgent.start()
    const script = 'ls /proc/self/fd; grep -E "^Sig(Blk|Ign)" /proc/self/status; ps -o sid= -p $$; echo $$'
    const { stdout } = await read(await native.agent.exec(shell(script)))
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => line.trim())
    // `ls` itself opens the directory as descriptor 3. So the shell gave `ls` only the descriptors 0, 1 and 2.
    assert.deepEqual(lines.slice(0, 4), ['0', '1', '2', '3'])
    assert.deepEqual(lines.slice(4, 6), ['SigBlk:\t0000000000000000', 'SigIgn:\t0000000000000000'])
    assert.equal(lines[6], lines[7])
  })

  test('a command’s relative cwd starts at the user’s home, and an absolute cwd is used unchanged', async () => {
    await using native = await NativeAgent.start()
    const home = await read(await native.agent.exec(command('pwd')))
    const relative = await read(await native.agent.exec({ ...command('pwd'), cwd: '../tmp' }))
    const absolute = await read(await native.agent.exec({ ...command('pwd'), cwd: '/usr' }))
    assert.equal(home.stdout, `${userInfo().homedir}\n`)
    assert.deepEqual([relative.stdout, absolute.stdout], ['/tmp\n', '/usr\n'])
  })

  for (const [stage, errno, spec] of [
    ['user', 'ENOENT', { ...command('true'), user: 'no-such-user' }],
    ['cwd', 'ENOENT', { ...command('true'), cwd: '/no/such/directory' }],
    ['cwd', 'ENOTDIR', { ...command('true'), cwd: '/etc/passwd' }],
    ['exec', 'ENOENT', command('no-such-program')],
    ['exec', 'EACCES', command('/etc/passwd')],
    ['exec', 'E2BIG', command('true', 'x'.repeat(200_000))],
  ] as const) {
    test(`a command that cannot start fails with the stage ${stage} and the errno ${errno}`, async () => {
      await using native = await NativeAgent.start()
      await assert.rejects(native.agent.exec(spec), (error: unknown) => {
        assert.ok(error instanceof StartFailed)
        assert.deepEqual([error.stage, error.errno], [stage, errno])
        return true
      })
    })
  }

  test('a command that does not run as root has its user’s groups, and cannot enter root’s directories', {
    skip: needsRoot,
  }, async () => {
    await using native = await NativeAgent.start()
    const { stdout } = await read(await native.agent.exec({ ...shell('id -u; id -G; pwd'), user: 'nobody' }))
    assert.deepEqual(stdout, '65534\n65534\n/\n')
    const numeric = await read(await native.agent.exec({ ...shell('id -u; id -g'), user: '4242' }))
    assert.equal(numeric.stdout, '4242\n0\n')
    for (const [user, ids] of [
      ['nobody:daemon', '65534\n1\n'],
      ['4242:77', '4242\n77\n'],
      ['4242:', '4242\n0\n'],
      ['root:root', '0\n0\n'],
    ] as const)
      assert.equal((await read(await native.agent.exec({ ...shell('id -u; id -G'), user }))).stdout, ids, user)
    for (const user of ['nobody:no-such-group', 'no-such-user:daemon', ':daemon'])
      await assert.rejects(native.agent.exec({ ...command('true'), user }), { stage: 'user', errno: 'ENOENT' })
    const denied = native.agent.exec({ ...command('true'), user: 'nobody', cwd: native.directory })
    await assert.rejects(denied, { stage: 'cwd', errno: 'EACCES' })
  })

  test('a command receives 12 MiB of input completely, and then the end of the input', async () => {
    await using native = await NativeAgent.start()
    const stdin = Buffer.alloc(12 * 1024 * 1024, 'The quick brown fox. ')
    const { stdout } = await read(await native.agent.exec({ ...command('sha256sum'), stdin }))
    assert.equal(stdout.slice(0, 64), createHash('sha256').update(stdin).digest('hex'))
  })

  test('a command that copies 3 MiB of its input to its output is never blocked', async () => {
    await using native = await NativeAgent.start()
    const stdin = Buffer.alloc(3 * 1024 * 1024, 'echo ')
    assert.equal((await read(await native.agent.exec({ ...command('cat'), stdin }))).stdout.length, stdin.length)
  })

  test('`write` passes input to a running command; `unsentBytes` counts input that waits for the command', async () => {
    await using native = await NativeAgent.start()
    const running = await native.agent.exec({
      ...shell('read first; read second; echo "$first $second"'),
      keepInput: true,
    })
    running.write(Buffer.from('one\ntw'))
    running.write(Buffer.from('o\n'))
    assert.equal((await read(running)).stdout, 'one two\n')
    running.write(Buffer.from('too late'))
    assert.equal(running.unsentBytes, 0)
    const deaf = await native.agent.exec({ ...command('sleep', '1000'), keepInput: true })
    for (let n = 0; n < 4; n += 1) deaf.write(Buffer.alloc(1024 * 1024))
    assert.ok(deaf.unsentBytes > 3 * 1024 * 1024)
    deaf.close()
    await until(() => !isAlive(deaf.pid), 'the command is killed with its connection')
    assert.equal(deaf.unsentBytes, 0)
  })

  test('a command that does not read its input can end by itself, and can be killed', async () => {
    await using native = await NativeAgent.start()
    const stdin = Buffer.alloc(4 * 1024 * 1024)
    assert.equal((await read(await native.agent.exec({ ...command('true'), stdin }))).exitCode, 0)
    const stuck = await native.agent.exec({ ...command('sleep', '1000'), stdin })
    stuck.kill(15)
    assert.equal((await read(stuck)).signal, 15)
  })

  test('the agent handles a request that is split into several frames as one request', async () => {
    await using native = await NativeAgent.start()
    const long = Array.from({ length: 20 }, () => 'y'.repeat(100_000))
    const { stdout } = await read(await native.agent.exec(command('/bin/sh', '-c', 'echo $#', 'sh', ...long)))
    assert.equal(stdout, '20\n')
  })

  test('a slow reader gets 64 MiB of a command’s output completely, and the agent’s memory stays small', async () => {
    await using native = await NativeAgent.start('release')
    const running = await native.agent.exec(shell('seq 1 9000000 | head -c 67108864'))
    const hash = createHash('sha256')
    let size = 0
    let largest = 0
    let turn = 0
    for await (const { data } of running) {
      hash.update(data)
      size += data.length
      if (turn++ % 50 === 0) {
        largest = Math.max(largest, native.residentKiB)
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    }
    const wanted = createHash('sha256')
    for (let i = 1, left = 67108864; left > 0; i++) {
      const line = `${i}\n`.slice(0, left)
      wanted.update(line)
      left -= line.length
    }
    assert.equal(size, 67108864)
    assert.equal(hash.digest('hex'), wanted.digest('hex'))
    assert.ok(largest < 4096, `the agent grew to ${largest} KiB`)
  })

  test('a command waits while its reader does not read, and its output does not accumulate in memory', async () => {
    await using native = await NativeAgent.start('release')
    const running = await native.agent.exec(command('yes'))
    const processor = () => readFileSync(`/proc/${running.pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
    await until(() => processor()[0] === 'S', 'yes asleep on its full pipe')
    assert.ok(native.residentKiB < 4096)
    running.kill(9)
    assert.equal((await read(running)).signal, 9)
  })

  test('a background child does not delay the exit of its command, and continues to run after that exit', async () => {
    await using native = await NativeAgent.start()
    const [go, trace] = [join(native.directory, 'go'), join(native.directory, 'trace')]
    const script = `mkfifo ${go}; while read line; do echo still here; echo $line >> ${trace}; done < ${go} & echo done`
    const { stdout, exitCode } = await read(await native.agent.exec(shell(script)))
    assert.deepEqual([stdout, exitCode], ['done\n', 0])
    writeFileSync(go, 'a\nb\nc\n')
    await until(() => existsSync(trace) && readFileSync(trace, 'utf8') === 'a\nb\nc\n', 'the child writing on')
  })

  test('all output that a command writes before its exit arrives, even if a child keeps the pipe open', async () => {
    await using native = await NativeAgent.start()
    for (let round = 0; round < 20; round++) {
      const { stdout } = await read(await native.agent.exec(shell('sleep 5 & head -c 50000 /dev/zero')))
      assert.equal(stdout.length, 50000)
    }
  })

  test('if a command’s connection is closed, the agent kills the process group, and leaves no zombie', async () => {
    await using native = await NativeAgent.start()
    const before = native.openDescriptors
    const running = await native.agent.exec(shell('sleep 1000 & echo $!; sleep 1000'))
    let child = 0
    for await (const { data } of running) {
      child = Number(data)
      break
    }
    await assert.rejects(running.exit, AgentGone)
    await until(() => !isAlive(child) && !isAlive(running.pid), 'both dead')
    await until(() => !existsSync(`/proc/${running.pid}`) && !existsSync(`/proc/${child}`), 'no zombies')
    await native.downTo(before)
  })

  test('`kill` of a command sends the signal to the command’s whole process group', async () => {
    await using native = await NativeAgent.start()
    const running = await native.agent.exec(shell('sleep 1000 & echo $!; wait'))
    const outputs = running[Symbol.asyncIterator]()
    const child = Number((await outputs.next()).value?.data)
    running.kill(15)
    assert.deepEqual(await running.exit, { exitCode: 143, signal: 15 })
    await until(() => !existsSync(`/proc/${child}`), 'the child gone')
  })

  test('the agent reaps processes whose parent has ended', async () => {
    await using native = await NativeAgent.start()
    const { stdout } = await read(await native.agent.exec(shell('(sh -c "echo \\$\\$; exec sleep 0.2" &)')))
    await until(() => !existsSync(`/proc/${Number(stdout)}`), 'the orphan reaped')
  })

  test('300 parallel commands each return their own output, and leave no process and no open descriptor', async () => {
    await using native = await NativeAgent.start()
    const before = native.openDescriptors
    const answers = await Promise.all(
      Array.from(
        { length: 300 },
        async (_, i) => (await read(await native.agent.exec(command('echo', `${i}`)))).stdout,
      ),
    )
    assert.deepEqual(
      answers,
      Array.from({ length: 300 }, (_, i) => `${i}\n`),
    )
    await native.downTo(before)
  })
})
