// Closing a connection wakes the agent. If agent and caller share one CPU, the caller then gets its answer later. So each operation
// of `Agent` resolves first, and closes its connection in the next turn of the event loop.
import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { unpackRecord } from './agent.ts'
import { NativeAgent, until } from './testing/native-agent.ts'

const user = userInfo().username
const program = { env: {}, user, mergeOutput: false }

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

const drained = async (pieces: AsyncIterable<unknown>) => {
  for await (const _ of pieces);
}

suite('an operation of `Agent` resolves before its connection to the agent is closed', { timeout: 60_000 }, () => {
  /** Runs each operation. Expects that no connection is closed when the answer arrives, and that all are closed afterwards. */
  const check = async (t: TestContext, native: NativeAgent, steps: Record<string, () => Promise<unknown>>) => {
    // Count only the open sockets of the agent: a command opens and closes files and pipes of the agent at any time.
    const sockets = () => native.openPaths.filter((path) => path.startsWith('socket:')).length
    const before = sockets()
    for (const [name, step] of Object.entries(steps)) {
      // Wait one turn of the event loop, in which the connections of the previous operation are closed.
      await nextTurn()
      const closing = t.mock.method(Socket.prototype, 'destroy')
      await step()
      assert.equal(closing.mock.callCount(), 0, `${name}: closed before its answer`)
      await nextTurn()
      assert.ok(closing.mock.callCount() > 0, `${name}: not closed behind its answer`)
      closing.mock.restore()
    }
    await until(() => sockets() <= before, `at most ${before} sockets`)
  }

  test('a call to the agent about commands or jobs, or `info`, resolves before its connection is closed', async (t) => {
    await using native = await NativeAgent.start()
    const { agent } = native
    const { jobs } = agent
    const job = { ...program, id: 'job', argv: ['cat'], ringBytes: 4096, keepInput: true }
    const terminal = { ...program, id: 'terminal', argv: ['cat'], ringBytes: 4096, terminal: { cols: 80, rows: 24 } }
    const none = new AbortController().signal
    await check(t, native, {
      info: () => agent.info(),
      'a command': async () => {
        const command = await agent.exec({ ...program, argv: ['echo', 'word'] })
        await drained(command)
        await command.exit
      },
      'a job is started': () => jobs.spawn(job),
      'a terminal is opened': () => jobs.spawn(terminal),
      'input of a job': () => jobs.input('job', Buffer.from('word\n')),
      resize: () => jobs.resize('terminal', 90, 30),
      'a list of jobs': () => jobs.list(),
      'what a job has said': () => drained(jobs.attach('job', 0, { follow: false })),
      'what a job has said, as it is': () => jobs.pour('job', () => true, { follow: false, signal: none }),
      'the end of input': () => jobs.closeInput('job'),
      'the end of a job': () => drained(jobs.attach('job', 0)),
      'a signal': () => jobs.signal('terminal', 9),
      removal: () => jobs.remove('terminal'),
    })
  })

  test('a call to the agent about sessions or their commands resolves before its connection is closed', async (t) => {
    await using native = await NativeAgent.start()
    const { sessions } = native.agent
    const none = new AbortController().signal
    await sessions.open({ ...program, id: 'kept', shell: 'sh', ringBytes: 65_536 })
    await sessions.exec('kept', { id: 'reads', text: 'read -r line', keepInput: true, echoInput: false })
    const short = { text: 'echo word', keepInput: false, echoInput: false }
    const open = { ...program, id: 'box', shell: 'sh' as const, ringBytes: 65_536 }
    await check(t, native, {
      'a session is opened': () => sessions.open(open),
      'a command': () => sessions.exec('box', { id: 'one', ...short }),
      'a command to its end': () => drained(sessions.execAndFollow('box', { id: 'two', ...short })),
      'a list of sessions': () => sessions.list(),
      'one session': () => sessions.get('box'),
      'one command': () => sessions.command('box', 'one'),
      'what a command has said': () => drained(sessions.attach('box', 'one', 0)),
      'what a command has said, as it is': () =>
        sessions.pour('box', 'one', () => true, { follow: true, signal: none }),
      input: () => sessions.input('kept', 'reads', Buffer.from('word\n')),
    })
  })

  test('a call to the agent about files resolves before its connection is closed', async (t) => {
    await using native = await NativeAgent.start()
    const files = native.agent.files(user)
    const at = (name: string) => join(native.directory, name)
    const content = Buffer.from('content')
    await check(t, native, {
      'a directory is made': () => files.mkdir(at('made')),
      'a file is written': () => files.write(at('made/file'), [content]),
      'what one is': () => files.stat(at('made/file')),
      'a list of files': () => drained(files.list(native.directory, 2)),
      'a file is read': async () => {
        const { stream } = await files.read(at('made/file'))
        assert.equal(Buffer.concat(await stream.toArray()).toString(), 'content')
      },
      permissions: () => files.setPermissions(at('made/file'), { mode: 0o600 }),
      'a file is moved': () => files.move(at('made/file'), at('moved')),
      'files are unpacked': () =>
        files.unpack([unpackRecord({ type: 'directory', path: Buffer.from(at('unpacked')) })]),
      removal: () => files.remove(at('made'), { recursive: true }),
    })
  })
})
