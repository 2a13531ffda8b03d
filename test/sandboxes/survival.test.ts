// Kills programs of a server at arbitrary moments. The sandboxes must keep running, and answer when the programs are back. Deleted
// sandboxes must leave nothing on the host.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import type { Daytona, PtyHandle, Sandbox } from '@daytona/sdk'
import { isAlive } from '#src/kit/process-identity.ts'
import { dataDirectoryAt } from '#src/up/data-directory.ts'
import { findUpState } from '#src/up/state-file.ts'
import { type Box, boxOf, createBox, until } from './box.ts'
import { type Platform, platform } from './harness.ts'
import { Screen } from './screen.ts'
import { connectTo } from './sdk-client.ts'

let alcove: Platform
before(async () => {
  alcove = await platform({ own: true, image: 'small' })
})
after(async () => {
  await alcove?.[Symbol.asyncDispose]()
})

suite('kill -9 of gate, runner and control', () => {
  let daytona: Daytona
  let sandbox: Sandbox
  before(async () => {
    daytona = connectTo(alcove)
    sandbox = await daytona.create()
  })
  after(async () => {
    await daytona?.[Symbol.asyncDispose]()
  })

  /** Repeats a call until the server has restarted and answers. */
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

  test('kill -9 of server programs does not end a session: its command goes on, and the log is complete', async () => {
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

  test('kill -9 of server programs does not affect a terminal, which keeps its shell, programs and output', async () => {
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

  test('kill -9 of server programs does not end running interpreter code; new code waits for its end', async () => {
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

  test('after kill -9 of the runner, all programs in a sandbox go on, and new programs can be started', async () => {
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
    // Call the preview by its path, because Node does not resolve the preview's host name.
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

const counter =
  "setsid bash -c 'n=0; while :; do n=$((n+1)); echo $n > /tmp/counter.new; mv /tmp/counter.new /tmp/counter; sleep 0.05; done' >/dev/null 2>&1 &"

suite('kill -9 of the server’s programs', () => {
  let box: Box
  let shellPid: string

  before(async () => {
    box = await createBox(alcove, { labels: { keep: 'me' } })
    await box.run(counter)
    await until('the counter runs', async () => (await box.try('cat /tmp/counter')).exitCode === 0)
    shellPid = await box.run('pgrep -f "while :" | head -1')
  })
  /** Runs a command in the sandbox and returns its output. Returns `undefined` if the server does not answer. */
  const ask = async (command: string): Promise<string | undefined> => {
    const reply = await boxOf(alcove, box.record)
      .toolbox('POST', '/process/execute', { command })
      .catch(() => undefined)
    return reply?.status === 200 ? String(reply.body['result']).trim() : undefined
  }

  /**
   * Waits until the number in /tmp/counter exceeds `before`, so that the counting process has survived the kill. The API must show
   * the sandbox as started.
   */
  const countsOn = async (before: number) => {
    await until(
      'the sandbox answers, and the counter moved on',
      async () => Number(await ask('cat /tmp/counter')) > before,
      60,
    )
    await until('it is the same process', async () => (await ask('pgrep -f "while :" | head -1')) === shellPid)
    await until(
      'the API knows it as started',
      async () => {
        const reply = await alcove.api('GET', `/sandbox/${box.id}`).catch(() => undefined)
        if (reply?.status !== 200) return false
        assert.deepEqual([reply.body['state'], reply.body['labels']], ['started', { keep: 'me' }])
        return true
      },
      60,
    )
  }

  const programs = () => findUpState(dataDirectoryAt(alcove.data).stateFile)?.programs ?? []
  type Running = ReturnType<typeof programs>[number]

  for (const program of ['control', 'gate', 'runner', 'postgres', 'ssh-gateway'] as const) {
    test(`if ${program} is killed, \`up\` restarts that program, and a sandbox’s processes continue`, async () => {
      const before = Number(await ask('cat /tmp/counter'))
      assert.ok(before > 0)
      const killed = await alcove.pidOf(program)
      await alcove.kill(program)
      await countsOn(before)
      const isReady = ({ name, state, pid }: Running) => name === program && state === 'ready' && pid !== killed
      await until(`${program} is ready again`, () => programs().some((now) => isReady(now) && isAlive(now)), 60)
    })
  }

  test('if `up` is killed, the server’s programs end; a sandbox keeps running, and the next `up` serves it', async () => {
    const before = Number(await ask('cat /tmp/counter'))
    assert.ok(before > 0)
    const ending = programs().filter(({ name }) => name !== 'postgres')
    await alcove.kill('up')
    await until('its programs are gone', () => !ending.some((program) => isAlive(program)))
    await alcove.start()
    await countsOn(before)
  })

  test('if all programs are killed at the same time, the next `up` serves the sandbox, which kept running', async () => {
    const before = Number(await ask('cat /tmp/counter'))
    assert.ok(before > 0)
    await alcove.killAll()
    await alcove.start()
    await countsOn(before)
  })

  test('a kill of a server program directly after a confirmed change of variables does not lose the change', async () => {
    for (const [n, program] of (['runner', 'control', 'gate'] as const).entries()) {
      const change = { set: { KEPT: String(n) }, unset: ['IS_SANDBOX'] }
      // Repeat the call, because the program that the previous round killed may not have restarted yet. Until it has, the answer is
      // 503.
      await until('the variables are set', async () => (await box.toolbox('POST', '/env', change)).status === 200)
      await alcove.kill(program)
      let told: string | undefined
      await until(
        'the sandbox answers',
        async () => {
          told = await ask('echo $KEPT $IS_SANDBOX')
          return told !== undefined
        },
        60,
      )
      assert.equal(told, String(n), program)
    }
  })

  test('if programs are killed while volumes are made or deleted, no volume is lost or left over', async () => {
    const api: Platform['api'] = async (...call) => {
      let answer: Awaited<ReturnType<Platform['api']>> | undefined
      await until(
        `an answer to ${call[0]} ${call[1]}`,
        async () => {
          answer = await alcove.api(...call).catch(() => undefined)
          return answer !== undefined && answer.status < 500
        },
        60,
      )
      return answer!
    }
    // Repeats the kill until it succeeds, because the program may not have restarted yet after the previous kill.
    const kill = (program: 'control' | 'runner') =>
      until(
        `${program} is killed`,
        () =>
          alcove.kill(program).then(
            () => true,
            () => false,
          ),
        60,
      )
    const volumes = async () => (await api('GET', '/volumes')).body as unknown as { id: string; state: string }[]
    const kept = String((await api('POST', '/volumes', { name: 'kept' })).body['id'])
    await using writer = await createBox(alcove, { volumes: [{ volumeId: kept, mountPath: '/kept' }] })
    await writer.run('echo kept > /kept/file; sync /kept/file')
    for (const [round, program] of (['runner', 'control'] as const).entries()) {
      const name = `killed-${round}`
      const { id } = (await api('POST', '/volumes', { name })).body
      const mounts = [
        { volumeId: name, mountPath: '/data' },
        { volumeId: 'kept', mountPath: '/kept' },
      ]
      const creating = alcove.api('POST', '/sandbox', { name, volumes: mounts }).catch(() => undefined)
      await new Promise((resolve) => setTimeout(resolve, 50 * round))
      await kill(program)
      await creating
      const removing = api('DELETE', `/sandbox/${name}`)
      if (round === 0) await kill('control')
      await removing
      await until('the volume may be deleted', async () => (await api('DELETE', `/volumes/${id}`)).status !== 409, 60)
      if (round === 1) await kill('runner')
    }
    await until('only one volume is left', async () => (await volumes()).length === 1, 90)
    assert.deepEqual(
      (await volumes()).map(({ id, state }) => [id, state]),
      [[kept, 'ready']],
    )
    assert.deepEqual(readdirSync(join(alcove.data, 'runner/pool/volumes')), [kept])
    await until('the writer answers', async () => (await writer.try('true').catch(() => undefined)) !== undefined, 60)
    assert.equal(await writer.run('cat /kept/file'), 'kept')
    await api('DELETE', `/sandbox/${writer.id}`)
    await until(
      'the last volume may be deleted',
      async () => (await api('DELETE', `/volumes/${kept}`)).status === 200,
      60,
    )
    await until('no volume is left', async () => (await volumes()).length === 0, 60)
    assert.deepEqual(readdirSync(join(alcove.data, 'runner/pool/volumes')), [])
  })

  test('if the runner is killed during a create, the sandbox is soon started, stopped, in error or not made', async () => {
    const creating = alcove.api('POST', '/sandbox', { name: 'interrupted' }).catch(() => undefined)
    await new Promise((resolve) => setTimeout(resolve, 20))
    await alcove.kill('runner')
    await creating
    await until(
      'it is settled',
      async () => {
        const reply = await alcove.api('GET', '/sandbox/interrupted').catch(() => undefined)
        return reply?.status === 404 || ['started', 'error', 'stopped'].includes(String(reply?.body['state']))
      },
      60,
    )
    const { status, body } = await alcove.api('GET', '/sandbox/interrupted')
    if (status === 200 && body['state'] === 'started') {
      assert.equal(await boxOf(alcove, body).run('echo whole'), 'whole')
    }
    await alcove.api('DELETE', '/sandbox/interrupted')
  })

  test('after all sandboxes are deleted, nothing of them is left on the host', async () => {
    const { body } = await alcove.api('GET', '/sandbox')
    for (const { id } of body['items'] as { id: string }[]) await alcove.api('DELETE', `/sandbox/${id}`)
    await until('every sandbox is gone from the host', async () => (await alcove.leftovers()).length === 0, 60)
    assert.deepEqual(await alcove.leftovers(), [])
  })
})
