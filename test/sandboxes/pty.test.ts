// Terminals in real sandboxes, driven by the public SDK as its users drive it.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { Daytona, type PtyHandle, type Sandbox } from '@daytona/sdk'
import { until } from './box.ts'
import { type Platform, platform } from './harness.ts'

/** What a terminal has shown. */
class Screen {
  text = ''
  readonly #decoder = new TextDecoder()
  readonly take = (data: Uint8Array): void => {
    this.text += this.#decoder.decode(data, { stream: true })
  }

  shows(wanted: RegExp): Promise<void> {
    return until(`${wanted} on the screen`, () => wanted.test(this.text))
  }
}

const connectTo = (alcove: Platform) => new Daytona({ apiKey: alcove.key, apiUrl: `${alcove.url}/api` })

suite('terminals of the SDK', () => {
  let alcove: Platform
  let daytona: Daytona
  let sandbox: Sandbox
  before(async () => {
    alcove = await platform()
    daytona = connectTo(alcove)
    sandbox = await daytona.create({ envVars: { OWN: 'sandbox' } })
  })
  after(async () => {
    await sandbox?.delete()
    await daytona?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  type Options = { id: string; cwd?: string; cols?: number; rows?: number; envs?: Record<string, string> }

  const create = async (options: Options) => {
    const screen = new Screen()
    const pty = await sandbox.process.createPty({ ...options, onData: screen.take })
    return { pty, screen }
  }

  test('create, type, and wait for the exit code', async () => {
    const { pty, screen } = await create({ id: 'a', cwd: '/tmp', cols: 100, rows: 30, envs: { GREETING: 'grüß dich' } })
    await pty.sendInput('echo "<$(stty size) $PWD $GREETING $OWN $TERM $(whoami)>"\n')
    await screen.shows(/<30 100 \/tmp grüß dich sandbox xterm-256color daytona>/)
    await pty.sendInput('exit 7\n')
    const { exitCode, error } = await pty.wait()
    assert.deepEqual([exitCode, error, pty.isConnected()], [7, 'non-zero exit', false])
    assert.deepEqual(await sandbox.process.listPtySessions(), [])
  })

  test('Ctrl-C, resize and a clean exit', async () => {
    const { pty, screen } = await create({ id: 'b' })
    await pty.sendInput('echo run$((1)); sleep 3600\n')
    await screen.shows(/run1/)
    await pty.sendInput(new Uint8Array([3]))
    const { cols, rows } = await pty.resize(133, 44)
    assert.deepEqual([cols, rows], [133, 44])
    await pty.sendInput('echo "<$? $(stty size)>"\n')
    await screen.shows(/<130 44 133>/)
    await pty.sendInput('exit\n')
    assert.equal((await pty.wait()).exitCode, 0)
  })

  test('a second client sees and types; leaving ends nothing; kill ends it for both', async () => {
    const first = await create({ id: 'c' })
    await first.pty.sendInput('echo first$((1))\n')
    await first.screen.shows(/first1/)
    const screen = new Screen()
    const second: PtyHandle = await sandbox.process.connectPty('c', { onData: screen.take })
    await screen.shows(/first1/)
    await second.sendInput('echo both$((2))\n')
    await Promise.all([first.screen.shows(/both2/), screen.shows(/both2/)])
    await first.pty.disconnect()
    const info = await sandbox.process.getPtySessionInfo('c')
    assert.deepEqual([info.id, info.active], ['c', true])
    await second.kill()
    const { exitCode, error } = await second.wait()
    assert.deepEqual([exitCode, error], [137, 'SIGKILL'])
    await assert.rejects(sandbox.process.getPtySessionInfo('c'))
    await assert.rejects(sandbox.process.connectPty('c', { onData: screen.take }), /no PTY session/)
  })

  test('an id that is there, and a directory that is not, are errors of the SDK', async () => {
    const { pty } = await create({ id: 'd' })
    await assert.rejects(create({ id: 'd' }))
    await assert.rejects(create({ id: 'e', cwd: '/nowhere' }), /cannot be used/)
    await pty.kill()
    await pty.wait()
  })
})

suite('kill -9 of runner and control', () => {
  test('the same shell goes on: what ran is running, what was shown is shown again', async () => {
    await using alcove = await platform({ own: true })
    await using daytona = connectTo(alcove)
    const sandbox = await daytona.create()
    const before = new Screen()
    const pty = await sandbox.process.createPty({ id: 'kept', cols: 90, onData: before.take })
    await pty.sendInput('echo "shell <$$>"; kept=value\n')
    await before.shows(/shell <\d+>/)
    const shell = /shell <(\d+)>/.exec(before.text)![1]
    await pty.sendInput('i=0; while :; do i=$((i+1)); echo "tick $i"; sleep 0.1; done\n')
    await before.shows(/tick 3\r\n/)

    await Promise.all([alcove.kill('runner'), alcove.kill('control')])

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
    await sandbox.delete()
  })
})
