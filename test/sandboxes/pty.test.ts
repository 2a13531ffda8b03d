// Terminals in real sandboxes, used through the public SDK.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Daytona, PtyHandle, Sandbox } from '@daytona/sdk'
import { type Platform, platform } from './harness.ts'
import { Screen } from './screen.ts'
import { connectTo } from './sdk-client.ts'

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

  test('the SDK creates a terminal, types into it, and waits for the exit code', async () => {
    const { pty, screen } = await create({ id: 'a', cwd: '/tmp', cols: 100, rows: 30, envs: { GREETING: 'grüß dich' } })
    await pty.sendInput('echo "<$(stty size) $PWD $GREETING $OWN $TERM $(whoami)>"\n')
    await screen.shows(/<30 100 \/tmp grüß dich sandbox xterm-256color daytona>/)
    await pty.sendInput('exit 7\n')
    const { exitCode, error } = await pty.wait()
    assert.deepEqual([exitCode, error, pty.isConnected()], [7, 'non-zero exit', false])
    assert.deepEqual(await sandbox.process.listPtySessions(), [])
  })

  test('Ctrl-C, a resize and an `exit` in a terminal work through the SDK', async () => {
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

  test('two clients can share a terminal; if one client disconnects, the terminal goes on for the second', async () => {
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

  test('the SDK throws an error if a new terminal has an existing id, or a directory that does not exist', async () => {
    const { pty } = await create({ id: 'd' })
    await assert.rejects(create({ id: 'd' }))
    await assert.rejects(create({ id: 'e', cwd: '/nowhere' }), /cannot be used/)
    await pty.kill()
    await pty.wait()
  })
})
