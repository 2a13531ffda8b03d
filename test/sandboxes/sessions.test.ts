// Tests sessions of real sandboxes through the public SDK.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Daytona, Sandbox } from '@daytona/sdk'
import { until } from './box.ts'
import { type Platform, platform } from './harness.ts'
import { connectTo } from './sdk-client.ts'

suite('sessions of the SDK', () => {
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

  const run = (id: string, command: string) => sandbox.process.executeSessionCommand(id, { command })

  test('commands of a session share directory, variables and functions; the SDK lists and deletes sessions', async () => {
    await sandbox.process.createSession('state')
    const first = await run('state', 'cd /tmp; export WHO=me; greet() { echo "hi $1"; }')
    assert.equal(first.exitCode, 0)
    const second = await run('state', 'pwd; greet "$WHO"; echo $OWN; whoami; echo err >&2; (exit 3)')
    assert.deepEqual([second.exitCode, second.stdout, second.stderr], [3, '/tmp\nhi me\nsandbox\ndaytona\n', 'err\n'])
    const session = await sandbox.process.getSession('state')
    assert.deepEqual(
      session.commands?.map(({ id, exitCode }) => [id, exitCode]),
      [
        [first.cmdId, 0],
        [second.cmdId, 3],
      ],
    )
    assert.deepEqual(
      (await sandbox.process.listSessions()).map(({ sessionId }) => sessionId),
      ['state'],
    )
    await sandbox.process.deleteSession('state')
    assert.deepEqual(await sandbox.process.listSessions(), [])
    await assert.rejects(sandbox.process.getSession('state'), { statusCode: 404 })
  })

  test('the output of an asynchronous command reaches the SDK’s callbacks, and the command accepts input', async () => {
    await sandbox.process.createSession('async')
    const { cmdId } = await sandbox.process.executeSessionCommand('async', {
      command: 'echo ready; read -r line; echo "got $line"; echo bad >&2; exit 4',
      runAsync: true,
    })
    const told = { stdout: '', stderr: '' }
    const following = sandbox.process.getSessionCommandLogs(
      'async',
      cmdId,
      (piece) => {
        told.stdout += piece
      },
      (piece) => {
        told.stderr += piece
      },
    )
    await until('the first line', () => told.stdout.includes('ready\n'))
    assert.equal((await sandbox.process.getSessionCommand('async', cmdId)).exitCode, undefined)
    await sandbox.process.sendSessionCommandInput('async', cmdId, 'grüß dich')
    await following
    assert.deepEqual(told, { stdout: 'ready\ngrüß dich\ngot grüß dich\n', stderr: 'bad\n' })
    assert.equal((await sandbox.process.getSessionCommand('async', cmdId)).exitCode, 4)
    const logs = await sandbox.process.getSessionCommandLogs('async', cmdId)
    assert.deepEqual([logs.stdout, logs.stderr], [told.stdout, told.stderr])
    await assert.rejects(run('async', 'echo more'), { statusCode: 410 })
    await sandbox.process.deleteSession('async')
  })

  test('a server that a session’s command starts with `&` has its own log, and ends with the session', async () => {
    await sandbox.process.createSession('server')
    const { cmdId } = await sandbox.process.executeSessionCommand('server', {
      command: 'python3 -u -m http.server 8123 --bind 127.0.0.1 &',
      runAsync: true,
    })
    const fetched =
      'import urllib.request as u, time\nfor _ in range(600):\n  try: print(u.urlopen("http://127.0.0.1:8123/").status); break\n  except OSError: time.sleep(0.05)'
    assert.equal((await run('server', `python3 -c '${fetched}'`)).stdout, '200\n')
    await until('the request in the log', async () =>
      /GET \/ HTTP/.test((await sandbox.process.getSessionCommandLogs('server', cmdId)).stderr ?? ''),
    )
    await sandbox.process.deleteSession('server')
    assert.notEqual((await sandbox.process.executeCommand('pgrep -f "http.server 812[3]"')).exitCode, 0)
  })

  test('without an entrypoint, the entrypoint session has no commands, and its logs end immediately', async () => {
    assert.deepEqual((await sandbox.process.getEntrypointSession()).commands, [])
    assert.equal((await sandbox.process.getEntrypointLogs()).stdout, '')
    await sandbox.process.getEntrypointLogs(
      () => assert.fail('no output'),
      () => assert.fail('no output'),
    )
  })

  test('the SDK throws an error if it follows the log of an unknown command', async () => {
    const ignore = () => undefined
    await assert.rejects(sandbox.process.getSessionCommandLogs('none', 'none', ignore, ignore))
  })
})
