// Processes in a sandbox survive a kill of our own programs, checked through the public SDK.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Daytona, PtyHandle, Sandbox } from '@daytona/sdk'
import { until } from './box.ts'
import { type Platform, platform } from './harness.ts'
import { Screen } from './screen.ts'
import { connectTo } from './sdk-client.ts'

suite('kill -9 of gate, runner and control', () => {
  let alcove: Platform
  let daytona: Daytona
  let sandbox: Sandbox
  before(async () => {
    alcove = await platform({ own: true, image: 'small' })
    daytona = connectTo(alcove)
    sandbox = await daytona.create()
  })
  after(async () => {
    await daytona?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  /** Repeats a call until the platform has restarted and answers. */
  const answered = async <T>(ask: () => Promise<T>): Promise<T> => {
    let answer: T | undefined
    await until(
      'an answer',
      async () => {
        answer = await ask().catch(() => undefined)
        return answer !== undefined
      },
      60,
    )
    return answer!
  }

  test('a session survives kill -9 of our programs: a running command keeps its complete log and continues', async () => {
    await sandbox.process.createSession('work')
    await sandbox.process.executeSessionCommand('work', { command: 'cd /tmp; X=kept' })
    const { cmdId } = await sandbox.process.executeSessionCommand('work', {
      command: 'n=0; while [ ! -e stop ]; do n=$((n+1)); echo $n; sleep 0.02; done; read -r last; echo "end $last"',
      runAsync: true,
      suppressInputEcho: true,
    })
    const { cmdId: queued } = await sandbox.process.executeSessionCommand('work', {
      command: 'echo $X',
      runAsync: true,
    })
    const lines = async () =>
      (await sandbox.process.getSessionCommandLogs('work', cmdId)).stdout?.split('\n').filter(Boolean) ?? []
    await until('it works', async () => (await lines()).length > 10)
    const before = (await answered(lines)).length
    await alcove.kill('runner')
    await alcove.kill('control')
    await alcove.kill('gate')
    await until('it went on meanwhile', async () => (await answered(lines)).length > before + 10, 60)
    const { commands } = await answered(() => sandbox.process.getSession('work'))
    assert.deepEqual(
      commands?.slice(1).map(({ id, exitCode }) => [id, exitCode]),
      [
        [cmdId, undefined],
        [queued, undefined],
      ],
    )
    await answered(() => sandbox.process.executeCommand('touch /tmp/stop'))
    await sandbox.process.sendSessionCommandInput('work', cmdId, 'word')
    let followed = ''
    await sandbox.process.getSessionCommandLogs(
      'work',
      queued,
      (piece) => {
        followed += piece
      },
      () => undefined,
    )
    assert.equal(followed, 'kept\n')
    const all = await lines()
    assert.equal(all.at(-1), 'end word')
    assert.deepEqual(
      all.slice(0, -1),
      Array.from({ length: all.length - 1 }, (_, i) => String(i + 1)),
    )
    assert.equal((await sandbox.process.getSessionCommand('work', cmdId)).exitCode, 0)
  })

  test('a terminal survives kill -9 of our programs, with its shell, running programs and earlier output', async () => {
    const before = new Screen()
    const pty = await sandbox.process.createPty({ id: 'kept', cols: 90, onData: before.take })
    await pty.sendInput('echo "shell <$$>"; kept=value\n')
    await before.shows(/shell <\d+>/)
    const shell = /shell <(\d+)>/.exec(before.text)![1]
    await pty.sendInput('i=0; while :; do i=$((i+1)); echo "tick $i"; sleep 0.1; done\n')
    await before.shows(/tick 3\r\n/)

    await Promise.all([alcove.kill('gate'), alcove.kill('runner'), alcove.kill('control')])

    const after = new Screen()
    let again: PtyHandle | undefined
    await until(
      'the terminal answers again',
      async () => {
        again = await sandbox.process.connectPty('kept', { onData: after.take }).catch(() => undefined)
        return again !== undefined
      },
      60,
    )
    await after.shows(/tick 1\r\n/)
    const seen = Math.max(...[...after.text.matchAll(/tick (\d+)/g)].map(([, tick]) => Number(tick)))
    await after.shows(new RegExp(`tick ${seen + 3}\\r\\n`))
    await again!.sendInput(new Uint8Array([3]))
    await again!.sendInput('echo "again <$$ $kept>"\n')
    await after.shows(new RegExp(`again <${shell} value>`))
    const [info] = await sandbox.process.listPtySessions()
    assert.deepEqual([info?.id, info?.active, info?.cols], ['kept', true, 90])
    await again!.kill()
    assert.equal((await again!.wait()).exitCode, 137)
  })

  test('an interpreter survives kill -9 of our programs: a run in progress finishes, and the next run waits', async () => {
    const interpreter = sandbox.codeInterpreter
    const context = await interpreter.createContext('/tmp')
    const begin = 'import os, time\nstate = [os.getpid()]\nprint(state[0])'
    const pid = (await interpreter.runCode(begin, { context })).stdout.trim()
    const inFlight =
      'open("begun", "w").close()\nwhile not os.path.exists("go"): time.sleep(0.01)\nstate.append("went on")'
    const lost = assert.rejects(interpreter.runCode(inFlight, { context }))
    const run = async (command: string) => (await sandbox.process.executeCommand(command)).exitCode === 0
    await until('the run has begun', () => run('test -e /tmp/begun'))

    await Promise.all([alcove.kill('gate'), alcove.kill('runner'), alcove.kill('control')])

    await lost
    await until('the sandbox answers again', () => run('touch /tmp/go').catch(() => false), 60)
    const { stdout } = await interpreter.runCode('print(os.getpid(), state)', { context })
    assert.equal(stdout, `${pid} [${pid}, 'went on']\n`)
    assert.deepEqual(
      (await interpreter.listContexts()).map(({ id, cwd }) => [id, cwd]),
      [[context.id, '/tmp']],
    )
  })

  test('after kill -9 of the runner alone, everything in a sandbox continues, and new programs can start', async () => {
    const { process: inside, codeInterpreter } = sandbox
    const port = 3123
    await inside.createSession('server')
    const serve =
      'import http.server as h, time\n' +
      'class S(h.BaseHTTPRequestHandler):\n' +
      '  def do_GET(self):\n' +
      '    self.send_response(200); self.end_headers(); self.wfile.write(b"begun"); self.wfile.flush(); time.sleep(4); self.wfile.write(b" ended")\n' +
      `h.ThreadingHTTPServer(("127.0.0.1", ${port}), S).serve_forever()\n`
    await sandbox.fs.uploadFile(Buffer.from(serve), '/tmp/serve.py')
    await inside.executeSessionCommand('server', { command: 'python3 /tmp/serve.py', runAsync: true })
    const { url, token } = await sandbox.getPreviewLink(port)
    // Use the preview's path, because Node does not resolve its host name.
    const path = `http://127.0.0.1:${new URL(url).port}/preview/${sandbox.id}/${port}/`
    const visit = () => fetch(path, { headers: { 'x-daytona-preview-token': token } })
    let preview: Response | undefined
    await until('the server listens', async () => {
      preview = await visit()
      return preview.status === 200
    })
    const screen = new Screen()
    const pty = await inside.createPty({ id: 'on', onData: screen.take })
    const waits = 'touch /tmp/begun-$0; while [ ! -e /tmp/on ]; do sleep 0.05; done; echo on'
    const command = inside.executeCommand(`sh -c '${waits}' exec`)
    const run = codeInterpreter.runCode(
      'import os, time\nwhile not os.path.exists("/tmp/on"): time.sleep(0.05)\nprint("on")',
    )
    await until(
      'the command has begun',
      async () => (await inside.executeCommand('test -e /tmp/begun-exec')).exitCode === 0,
    )

    await alcove.kill('runner')
    for (let n = 0; n < 10; n++) assert.equal((await inside.executeCommand(`echo ${n}`)).result, `${n}\n`)
    await pty.sendInput('echo "shell $((1 + 1))"\n')
    await screen.shows(/shell 2/)
    await inside.executeCommand('touch /tmp/on')
    assert.equal((await command).result, 'on\n')
    assert.equal((await run).stdout, 'on\n')
    assert.equal(await preview!.text(), 'begun ended')
    await pty.kill()
  })
})
