import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { needsRoot } from '#test/needs-root.ts'
import { agentAt, type JobEvent, type JobSpec, type Jobs, type Piece } from './agent.ts'
import { encodeFrame, FieldWriter, kinds } from './frames.ts'
import { NativeAgent, until } from './testing/native-agent.ts'
import { provoke } from './testing/provoke.ts'

const job = (id: string, script: string, more: Partial<JobSpec> = {}): JobSpec => ({
  ...{ id, argv: ['/bin/sh', '-c', script], env: {}, user: userInfo().username, ringBytes: 1 << 20 },
  ...more,
})

const collect = async (events: AsyncIterable<JobEvent>): Promise<JobEvent[]> => {
  const all: JobEvent[] = []
  for await (const event of events) all.push(event)
  return all
}
const text = (events: JobEvent[], stream?: 'stdout' | 'stderr'): string =>
  events
    .map((event) => (event.type === 'output' && (!stream || event.stream === stream) ? event.data.toString() : ''))
    .join('')
const lost = (events: JobEvent[]): number =>
  events.reduce((sum, event) => sum + (event.type === 'truncated' ? event.lostBytes : 0), 0)

/** Follows a job until its output matches `wanted`. Returns the output. */
const untilOutput = async (jobs: Jobs, id: string, wanted: RegExp, from = 0): Promise<string> => {
  let seen = ''
  for await (const event of jobs.attach(id, from)) {
    if (event.type === 'output') seen += event.data.toString()
    if (wanted.test(seen)) return seen
  }
  return assert.fail(`the job ended without ${wanted}: ${seen}`)
}

suite('`attach` to a job of the agent, and other calls for jobs', () => {
  test('`attach` returns a job’s output in order from any offset, and its exit, even after the job has ended', async () => {
    await using native = await NativeAgent.start()
    const { jobs } = native.agent
    // The job writes each line after it has got a line of input. So the agent has read every earlier line, in whatever stream.
    const script = 'for i in 1 2 3; do echo o$i; read next; echo e$i >&2; read next; done; exit 3'
    await jobs.spawn(job('a', script, { keepInput: true }))
    const live: JobEvent[] = []
    for await (const event of jobs.attach('a', 0)) {
      live.push(event)
      if (event.type === 'output') await jobs.input('a', Buffer.from('\n'))
    }
    assert.equal(text(live), 'o1\ne1\no2\ne2\no3\ne3\n')
    assert.equal(text(live, 'stderr'), 'e1\ne2\ne3\n')
    assert.deepEqual(live.at(-1), { type: 'exit', exitCode: 3, signal: null })
    const again = await collect(jobs.attach('a', 0))
    assert.deepEqual([text(again), text(again, 'stdout')], [text(live), text(live, 'stdout')])
    assert.equal(text(await collect(jobs.attach('a', 7))), '2\ne2\no3\ne3\n')
  })

  test('a job continues after its client disconnects; another client finds the job by its metadata', async () => {
    await using native = await NativeAgent.start()
    const metadata = Buffer.from(JSON.stringify({ session: 'über' }))
    await native.agent.jobs.spawn(
      job('shell', 'while read line; do echo "<$line>"; done', { keepInput: true, metadata }),
    )
    await native.agent.jobs.input('shell', Buffer.from('one\n'))
    const first = await untilOutput(native.agent.jobs, 'shell', /<one>\n/)
    const { jobs } = agentAt(native.socketPath)
    const [found, ...others] = await jobs.list()
    assert.deepEqual(others, [])
    assert.deepEqual([found!.id, found!.state, found!.metadata, found!.exit], ['shell', 'running', metadata, null])
    assert.equal(found!.endOffset, first.length)
    await jobs.input('shell', Buffer.from('two\n'))
    assert.equal(await untilOutput(jobs, 'shell', /<two>\n/, found!.endOffset), '<two>\n')
    await jobs.closeInput('shell')
    const events = await collect(jobs.attach('shell', 0))
    assert.deepEqual([text(events), events.at(-1)], ['<one>\n<two>\n', { type: 'exit', exitCode: 0, signal: null }])
    const [ended] = await jobs.list()
    assert.deepEqual([ended!.state, ended!.exit], ['ended', { exitCode: 0, signal: null }])
    assert.ok(ended!.endedAt! >= ended!.createdAt)
  })

  test('a job with `keepBeginning` stores the first and the last output of each stream, and loses the middle', async () => {
    await using native = await NativeAgent.start()
    const { jobs } = native.agent
    const script = (lines: number) => `i=0; while [ $i -lt ${lines} ]; do echo o$i; echo e$i >&2; i=$((i + 1)); done`
    for (const lines of [10, 200, 500, 3000]) {
      const id = `both-${lines}`
      await jobs.spawn(job(id, script(lines), { ringBytes: 4096, keepBeginning: true }))
      await collect(jobs.attach(id, 0))
      const { endOffset } = (await jobs.list()).find((record) => record.id === id)!
      const events = await collect(jobs.attach(id, 0))
      const gap = events.findIndex(({ type }) => type === 'truncated')
      assert.equal(lost(events), Math.max(0, endOffset - 4096), id)
      const [before, after] = [events.slice(0, Math.max(0, gap)), events.slice(gap + 1)]
      assert.equal(text(before).length, gap < 0 ? 0 : 256, id)
      const wholeLines = (part: string) => part.split('\n').slice(1, -1)
      let wholeLinesKept = 0
      for (const stream of ['stdout', 'stderr'] as const) {
        const letter = stream === 'stdout' ? 'o' : 'e'
        const all = Array.from({ length: lines }, (_, i) => `${letter}${i}`)
        const [first, last] = [text(before, stream), wholeLines(text(after, stream))]
        assert.ok(`${all.join('\n')}\n`.startsWith(first), `${id} ${stream}`)
        assert.deepEqual(last, all.slice(all.length - last.length), `${id} ${stream}`)
        wholeLinesKept += last.length
      }
      // Count the lines of both streams together: the agent may read much of one stream before it reads the other.
      assert.ok(wholeLinesKept > 16, id)
      // The returned and the lost bytes together must be all bytes from the offset to the end.
      for (const offset of [0, 100, 255, 256, 257, 1000, endOffset - 1].filter((at) => at < endOffset)) {
        const told = await collect(jobs.attach(id, offset))
        assert.equal(text(told).length + lost(told), endOffset - offset, `${id} from ${offset}`)
      }
    }
  })

  test('`keepBeginning` stores less of a job’s first output if its two output streams alternate very often', async () => {
    await using native = await NativeAgent.start()
    const { jobs } = native.agent
    const program = 'import os\nfor i in range(40000):\n os.write(1, b"o"); os.write(2, b"e")'
    const argv = ['python3', '-c', program]
    await jobs.spawn({
      ...job('each', '', { ringBytes: 65_536, keepBeginning: true }),
      argv,
      env: { PATH: '/usr/bin' },
    })
    await collect(jobs.attach('each', 0))
    const events = await collect(jobs.attach('each', 0))
    assert.match(text(events, 'stdout'), /^o+$/)
    assert.match(text(events, 'stderr'), /^e+$/)
    assert.equal(text(events).length + lost(events), 80_000)
    assert.equal(events[0]?.type, 'output')
  })

  test('a job with more output than `ringBytes` keeps the newest output, and reports how much is lost', async () => {
    await using native = await NativeAgent.start()
    const { jobs } = native.agent
    await jobs.spawn(job('big', 'seq 1 100000', { ringBytes: 10_000 }))
    const all = Array.from({ length: 100_000 }, (_, i) => `${i + 1}\n`).join('')
    await collect(jobs.attach('big', 0))
    const [record] = await jobs.list()
    assert.deepEqual([record!.startOffset, record!.endOffset], [all.length - 10_000, all.length])
    const events = await collect(jobs.attach('big', 0))
    assert.deepEqual(events[0], { type: 'truncated', offset: 0, lostBytes: all.length - 10_000 })
    assert.equal(text(events), all.slice(-10_000))
  })

  test('a slow client does not slow a job; each byte of the job’s output arrives or is reported as lost', async () => {
    await using native = await NativeAgent.start('release')
    const { jobs } = native.agent
    const total = 32 * 1024 * 1024
    await jobs.spawn(job('flood', `seq 1 9000000 | head -c ${total}`, { ringBytes: 1 << 20 }))
    const slow = jobs.attach('flood', 0)
    const first = await slow.next()
    assert.equal(first.value?.type, 'output')
    await collect(jobs.attach('flood', 0))
    const events = [first.value as JobEvent, ...(await collect(slow))]
    assert.ok(lost(events) > 0)
    assert.equal(text(events).length + lost(events), total)
    let at = 0
    for (const event of events) {
      if (event.type === 'exit') continue
      assert.equal(event.offset, at)
      at += event.type === 'output' ? event.data.length : event.lostBytes
    }
    assert.ok(native.residentKiB < 6144, `the agent grew to ${native.residentKiB} KiB`)
  })

  test('two clients that follow one job each get all 16 MiB of the job’s output', async () => {
    await using native = await NativeAgent.start()
    const { jobs } = native.agent
    await jobs.spawn(job('twice', 'seq 1 9000000 | head -c 16777216', { ringBytes: 1 << 25 }))
    const hash = async (): Promise<string> => {
      const sum = createHash('sha256')
      for await (const event of jobs.attach('twice', 0)) if (event.type === 'output') sum.update(event.data)
      return sum.digest('hex')
    }
    const [one, two] = await Promise.all([hash(), hash()])
    assert.equal(one, two)
    assert.equal(one, await hash())
  })

  test('a job’s output that alternates between stdout and stderr keeps its order; lost bytes are reported', async () => {
    await using native = await NativeAgent.start()
    const { jobs } = native.agent
    const script = `import os\nfor i in range(50000):\n os.write(1 + i % 2, b'%05d' % i)`
    await jobs.spawn(job('zigzag', '', { argv: ['python3', '-c', script], ringBytes: 1 << 22 }))
    await collect(jobs.attach('zigzag', 0))
    const events = await collect(jobs.attach('zigzag', 0))
    assert.equal(text(events).length + lost(events), 250_000)
    for (const stream of ['stdout', 'stderr'] as const) {
      const numbers = text(events, stream).match(/\d{5}/g)!.map(Number)
      assert.deepEqual(
        numbers,
        [...numbers].sort((a, b) => a - b),
      )
    }
  })

  test('`attach` to a job with `follow: false` ends after the output that the job has written so far', async () => {
    await using native = await NativeAgent.start()
    const { jobs } = native.agent
    await jobs.spawn(job('idle', 'echo here; sleep 1000'))
    await untilOutput(jobs, 'idle', /here/)
    assert.deepEqual(text(await collect(jobs.attach('idle', 0, { follow: false }))), 'here\n')
    const abort = new AbortController()
    const following = collect(jobs.attach('idle', 5, { signal: abort.signal }))
    abort.abort()
    assert.deepEqual(await following, [])
  })

  test('a job that reads slowly gets all input in order', async () => {
    await using native = await NativeAgent.start()
    const { jobs } = native.agent
    await jobs.spawn(job('sum', 'sleep 0.2; sha256sum', { keepInput: true }))
    const pieces = Array.from({ length: 40 }, (_, i) => Buffer.alloc(50_000 + i, `${i} `))
    await Promise.all([...pieces.map((piece) => jobs.input('sum', piece)), jobs.closeInput('sum')])
    const wanted = createHash('sha256').update(Buffer.concat(pieces)).digest('hex')
    assert.equal(text(await collect(jobs.attach('sum', 0))).slice(0, 64), wanted)
  })

  test('`input` to a job is refused after `closeInput`, after the job’s end, and without `keepInput`', async () => {
    await using native = await NativeAgent.start()
    const { jobs } = native.agent
    await jobs.spawn(job('closed', 'sleep 1000'))
    await assert.rejects(jobs.input('closed', Buffer.from('x')), { stage: 'job', errno: 'EPIPE' })
    await jobs.spawn(job('stuck', 'sleep 1000', { keepInput: true }))
    const stuck = assert.rejects(jobs.input('stuck', Buffer.alloc(500_000)), { stage: 'job', errno: /EPIPE|ESRCH/ })
    await jobs.signal('stuck', 9)
    await stuck
    await collect(jobs.attach('stuck', 0))
    await assert.rejects(jobs.input('stuck', Buffer.from('x')), { stage: 'job', errno: 'ESRCH' })
    // Send the signal again and again until the agent answers ESRCH. A dead process can still be signalled until it is reaped.
    const signalUntilRefused = async () => {
      for (;;) await jobs.signal('stuck', 9)
    }
    await assert.rejects(signalUntilRefused, { stage: 'job', errno: 'ESRCH' })
  })

  test('a job with `keepFailed` that cannot start is listed with exit code 127, and its output is the reason', async () => {
    await using native = await NativeAgent.start()
    const { jobs } = native.agent
    for (const [id, more, stage, reason] of [
      [
        'program',
        { argv: ['/nowhere'] },
        'exec',
        /^It could not be started: the program: No such file or directory\.\n$/,
      ],
      ['cwd', { cwd: '/nowhere' }, 'cwd', /its working directory: No such file/],
      ['user', { user: 'nobody-at-all' }, 'user', /its user: No such file/],
      ['terminal', { argv: ['/nowhere'], terminal: { cols: 80, rows: 24 } }, 'exec', /the program: No such file/],
    ] as const) {
      const spec = job(id, 'true', { ...more, keepFailed: true, metadata: Buffer.from('known') })
      await assert.rejects(jobs.spawn(spec), { name: 'StartFailed', stage })
      const events = await collect(jobs.attach(id, 0))
      assert.match(text(events, 'stderr'), reason)
      assert.deepEqual(events.at(-1), { type: 'exit', exitCode: 127, signal: null })
      const found = (await jobs.list()).find((one) => one.id === id)
      assert.deepEqual(
        [found?.state, found?.exit?.exitCode, found?.metadata.toString(), found?.endedAt !== null],
        ['ended', 127, 'known', true],
      )
      await assert.rejects(jobs.spawn(spec), { stage: 'job', errno: 'EEXIST' })
      await jobs.remove(id)
    }
    assert.deepEqual(await jobs.list(), [])
  })

  test('`pour` passes on a job’s output so far, or with `follow` the job’s output until the job ends', async () => {
    await using native = await NativeAgent.start()
    const { jobs } = native.agent
    const poured = async (follow: boolean): Promise<string> => {
      let all = ''
      const take = (piece: Piece): boolean => {
        if (piece.type === 'output') all += `${piece.stream}:${piece.data}`
        return true
      }
      await jobs.pour('a', take, { follow, signal: AbortSignal.timeout(30_000) })
      return all
    }
    await jobs.spawn(job('a', 'echo one; read x; echo two >&2', { keepInput: true }))
    await untilOutput(jobs, 'a', /one/)
    assert.equal(await poured(false), 'stdout:one\n')
    const following = poured(true)
    await jobs.closeInput('a')
    assert.equal(await following, 'stdout:one\nstderr:two\n')
    await assert.rejects(
      jobs.pour('b', () => true, { follow: false, signal: AbortSignal.timeout(30_000) }),
      {
        stage: 'job',
        errno: 'ENOENT',
      },
    )
  })

  test('a call about a missing job, or to start a job that is invalid or has a used id, fails with an errno', async () => {
    await using native = await NativeAgent.start()
    const { jobs } = native.agent
    await jobs.spawn(job('twin', 'sleep 1000'))
    await assert.rejects(jobs.spawn(job('twin', 'true')), { stage: 'job', errno: 'EEXIST' })
    await assert.rejects(collect(jobs.attach('nobody', 0)), { stage: 'job', errno: 'ENOENT' })
    await assert.rejects(collect(jobs.attach('twin', 99)), { stage: 'job', errno: 'ERANGE' })
    await assert.rejects(jobs.resize('twin', 10, 10), { stage: 'job', errno: 'ENOTTY' })
    await assert.rejects(jobs.remove('nobody'), { stage: 'job', errno: 'ENOENT' })
    for (const id of ['', 'with space', 'x'.repeat(65), 'ü']) {
      await assert.rejects(jobs.spawn(job(id, 'true')), { stage: 'protocol' })
    }
    await assert.rejects(jobs.spawn(job('ring', 'true', { ringBytes: 10 })), { stage: 'protocol' })
    await assert.rejects(jobs.spawn(job('meta', 'true', { metadata: Buffer.alloc(4097) })), { stage: 'protocol' })
    const missing = job('missing', '', { argv: ['/no/such/program'] })
    await assert.rejects(jobs.spawn(missing), { name: 'StartFailed', stage: 'exec', errno: 'ENOENT' })
    assert.deepEqual(
      (await jobs.list()).map(({ id }) => id),
      ['twin'],
    )
  })

  test('a background child of a job continues after the job’s exit, and its output is still stored', async () => {
    await using native = await NativeAgent.start()
    const { jobs } = native.agent
    const go = `${native.directory}/go`
    await jobs.spawn(job('parent', `mkfifo ${go}; (read line < ${go}; echo later) & echo now`))
    const events = await collect(jobs.attach('parent', 0))
    assert.deepEqual([text(events), events.at(-1)?.type], ['now\n', 'exit'])
    await native.agent.exec({ ...job('x', `echo > ${go}`), mergeOutput: true })
    await until(async () => text(await collect(jobs.attach('parent', 0))) === 'now\nlater\n', 'the child’s word')
  })

  test('`remove` of a job kills the job’s process group and descendants, and ends connections to the job', async () => {
    await using native = await NativeAgent.start()
    const { jobs } = native.agent
    const before = native.openDescriptors
    const script =
      'set -m; sleep 1000 & echo $!; setsid sleep 1001 & echo $!; set +m; sleep 1002 & echo $!; echo ready; wait'
    await jobs.spawn(job('family', '', { argv: ['bash', '-c', script] }))
    const seen = await untilOutput(jobs, 'family', /ready/)
    const pids = seen.match(/^\d+$/gm)!.map(Number)
    assert.equal(pids.length, 3)
    const follower = collect(jobs.attach('family', seen.length))
    await jobs.remove('family')
    assert.deepEqual(await follower, [{ type: 'exit', exitCode: 137, signal: 9 }])
    await until(() => pids.every((pid) => !existsSync(`/proc/${pid}`)), 'all of them gone')
    assert.deepEqual(await jobs.list(), [])
    await native.downTo(before)
    await jobs.spawn(job('family', 'true'))
  })

  test('100 busy jobs and 100 clients that do not read need less than 20 MB of memory in the agent', async () => {
    await using native = await NativeAgent.start('release')
    const { jobs } = native.agent
    const ids = Array.from({ length: 100 }, (_, i) => `busy-${i}`)
    const followers = await Promise.all(
      ids.map(async (id) => {
        await jobs.spawn(job(id, 'head -c 1000000 /dev/zero; exec sleep 1000', { ringBytes: 65536 }))
        const follower = jobs.attach(id, 0)
        await follower.next()
        return follower
      }),
    )
    await until(async () => (await jobs.list()).every(({ endOffset }) => endOffset === 1_000_000), 'all output taken')
    assert.ok(native.residentKiB < 20_000, `the agent grew to ${native.residentKiB} KiB`)
    await Promise.all(followers.map((follower) => follower.return()))
    await Promise.all(ids.map((id) => jobs.remove(id)))
    assert.deepEqual(await jobs.list(), [])
  })

  test('random frames about jobs never crash the agent', async () => {
    await using native = await NativeAgent.start()
    await native.agent.jobs.spawn(job('target', 'while read l; do echo $l; done', { keepInput: true }))
    const ids = fc.constantFrom('target', 'nobody', '')
    const kind = fc.constantFrom(kinds.spawn, kinds.attach, kinds.input, kinds.closeInput, kinds.resize, kinds.list)
    const request = fc
      .tuple(kind, ids, fc.uint8Array({ maxLength: 40, size: 'max' }))
      .map(([kind, id, rest]) => encodeFrame(kind, Buffer.concat([new FieldWriter().string(id).done(), rest])))
    await fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 3 }), async (sent) => {
        await provoke(native.socketPath, sent, true)
      }),
      { numRuns: 300 },
    )
    assert.deepEqual(
      (await native.agent.jobs.list()).map(({ id }) => id),
      ['target'],
    )
  })
})

suite('jobs with a terminal', () => {
  const terminal = { cols: 80, rows: 24 }

  test('a job with a terminal has a controlling terminal of the requested size, and TERM is set', async () => {
    await using native = await NativeAgent.start()
    const { jobs } = native.agent
    await jobs.spawn(
      job('tty', 'tty; stty size; echo $TERM; ps -o tpgid= -p $$; echo $$; echo to-tty > /dev/tty', { terminal }),
    )
    const lines = text(await collect(jobs.attach('tty', 0)))
      .split('\r\n')
      .map((line) => line.trim())
    assert.match(lines[0]!, /^\/dev\/pts\/\d+$/)
    assert.deepEqual(lines.slice(1, 3), ['24 80', 'xterm-256color'])
    assert.equal(lines[3], lines[4])
    assert.equal(lines[5], 'to-tty')
  })

  test('a program in a terminal gets SIGWINCH at a resize, and sees the new size', async () => {
    await using native = await NativeAgent.start()
    const { jobs } = native.agent
    const script = 'trap "stty size; exit 0" WINCH; echo ready; while :; do sleep 0.05; done'
    await jobs.spawn(job('size', '', { argv: ['bash', '-c', script], terminal }))
    await untilOutput(jobs, 'size', /ready/)
    await jobs.resize('size', 132, 50)
    assert.match(text(await collect(jobs.attach('size', 0))), /50 132/)
    const [record] = await jobs.list()
    assert.deepEqual([record!.isTerminal, record!.cols, record!.rows], [true, 132, 50])
  })

  test('an interactive shell in a terminal echoes input, stops its program at Ctrl-C, and reports its exit', async () => {
    await using native = await NativeAgent.start()
    const { jobs } = native.agent
    const argv = ['bash', '--norc', '--noprofile', '-i']
    await jobs.spawn(job('shell', '', { argv, terminal, env: { PS1: '> ' } }))
    await untilOutput(jobs, 'shell', /> /)
    // Wait until the program reports that it runs, because Ctrl-C has no effect between the shell's fork and exec. The sleeps are
    // short: if a signal arrives just before a sleep, Python notices the signal when the sleep is over.
    const code = `import time\\nprint("fore" + "ground", flush=True)\\nwhile True: time.sleep(0.05)`
    await jobs.input('shell', Buffer.from(`python3 -c $'${code}'\n`))
    await untilOutput(jobs, 'shell', /foreground\r\n/)
    await jobs.input('shell', Buffer.of(3))
    // On a busy machine, the kernel echoes `^C` only after the shell has printed its next prompt.
    await untilOutput(jobs, 'shell', /KeyboardInterrupt\r\n[\s\S]*> /)
    await jobs.input('shell', Buffer.from('echo $((6*7)); exit 5\n'))
    const events = await collect(jobs.attach('shell', 0))
    assert.match(text(events), /\^C/)
    assert.match(text(events), /\r42\r\n/)
    assert.deepEqual(events.at(-1), { type: 'exit', exitCode: 5, signal: null })
  })

  test('a job with a terminal loses none of its last output', async () => {
    await using native = await NativeAgent.start()
    const { jobs } = native.agent
    for (let round = 0; round < 20; round++) {
      await jobs.spawn(job(`last-${round}`, 'seq 1 3000', { terminal }))
      const lines = text(await collect(jobs.attach(`last-${round}`, 0)))
        .trim()
        .split('\r\n')
      assert.deepEqual([lines.length, lines.at(-1)], [3000, '3000'])
      await jobs.remove(`last-${round}`)
    }
  })

  test('a job’s terminal device belongs to the job’s user', { skip: needsRoot }, async () => {
    await using native = await NativeAgent.start()
    const { jobs } = native.agent
    await jobs.spawn(
      job('owned', 'stat -c "%U %a" $(tty); exec 3<>$(tty) && echo opened', { terminal, user: 'nobody' }),
    )
    assert.equal(text(await collect(jobs.attach('owned', 0))), 'nobody 620\r\nopened\r\n')
  })

  test('`closeInput` of a terminal is refused; the character Ctrl-D ends its input', async () => {
    await using native = await NativeAgent.start()
    const { jobs } = native.agent
    await jobs.spawn(job('cat', 'cat', { terminal }))
    await assert.rejects(jobs.closeInput('cat'), { stage: 'job', errno: 'ENOTTY' })
    await jobs.input('cat', Buffer.of(4))
    assert.deepEqual((await collect(jobs.attach('cat', 0))).at(-1), { type: 'exit', exitCode: 0, signal: null })
  })

  test('a job’s output is stored in an unnamed file on the disk, which is closed when the job is removed', async () => {
    await using native = await NativeAgent.start()
    const { jobs } = native.agent
    const { pid } = await jobs.spawn(job('kept', 'echo kept; exec sleep 1000'))
    await untilOutput(jobs, 'kept', /kept/)
    assert.equal(native.openPaths.filter((target) => /^\/(var\/)?tmp\/.*\(deleted\)$/.test(target)).length, 1)
    await jobs.remove('kept')
    await until(() => !existsSync(`/proc/${pid}`), 'the job gone')
  })
})
