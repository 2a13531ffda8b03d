// Tests changes of the environment variables of a running sandbox, through the public SDK.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Daytona, Sandbox } from '@daytona/sdk'
import { until } from './box.ts'
import { type Platform, platform } from './harness.ts'
import { connectTo } from './sdk-client.ts'

suite('updateEnv of the SDK', () => {
  let alcove: Platform
  let daytona: Daytona
  let sandbox: Sandbox
  before(async () => {
    alcove = await platform()
    daytona = connectTo(alcove)
    sandbox = await daytona.create({ envVars: { OF_CREATE: 'create', COLOUR: 'green' } })
  })
  after(async () => {
    await sandbox?.delete(60, true)
    await daytona?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  const run = async (command: string, envs?: Record<string, string>, inside = sandbox): Promise<string> => {
    const { exitCode, result } = await inside.process.executeCommand(command, undefined, envs, 60)
    assert.equal(exitCode, 0, `${command}: ${result}`)
    return result.trim()
  }
  const print = 'echo "$OF_CREATE,$COLOUR,$ADDED"'

  test('commands, terminals, interpreters and `sudo -E` that start after `updateEnv` have the new variables', async () => {
    await sandbox.process.createSession('before')
    await sandbox.updateEnv({ COLOUR: 'blue', ADDED: 'a b\n"c" $HOME' }, { unset: ['OF_CREATE'] })
    const expected = ',blue,a b\n"c" $HOME'
    assert.equal(await run(print), expected)
    assert.equal(await run(print, { COLOUR: 'call' }), expected.replace('blue', 'call'))
    assert.equal(await run(`sudo -E sh -c '${print}'`), expected)
    const code = 'import os\nprint(os.environ.get("OF_CREATE", ""), os.environ["COLOUR"], sep=",")'
    assert.equal((await sandbox.process.codeRun(code)).result, ',blue\n')
    assert.equal((await sandbox.codeInterpreter.runCode(code)).stdout, ',blue\n')

    const inSession = async (id: string) =>
      (await sandbox.process.executeSessionCommand(id, { command: 'echo $OF_CREATE,$COLOUR' })).stdout?.trim()
    await sandbox.process.createSession('after')
    assert.deepEqual([await inSession('before'), await inSession('after')], ['create,green', ',blue'])

    let seen = ''
    const terminal = await sandbox.process.createPty({
      id: 'after',
      onData: (data) => {
        seen += Buffer.from(data)
      },
    })
    await terminal.waitForConnection()
    await terminal.sendInput('echo "[$OF_CREATE,$COLOUR]"; exit\n')
    await terminal.wait()
    assert.match(seen, /^\[,blue\]/m)
    await sandbox.refreshData()
    assert.deepEqual(sandbox.env, { COLOUR: 'blue', ADDED: 'a b\n"c" $HOME' })
  })

  test('`updateEnv` can remove and set a variable of the image; if PATH is removed, a default PATH is used', async () => {
    const path = await run('echo $PATH')
    await sandbox.updateEnv({}, { unset: ['PATH', 'IS_SANDBOX', 'DAYTONA_REGION_ID', 'NOWHERE'] })
    assert.equal(
      await run('echo "$IS_SANDBOX$DAYTONA_REGION_ID,$PATH"'),
      ',/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    )
    await sandbox.updateEnv({ PATH: path, IS_SANDBOX: '1' })
    assert.equal(await run('echo $IS_SANDBOX,$PATH'), `1,${path}`)
  })

  test('if twenty `updateEnv` calls run at once, commands after each call’s answer have the call’s variable', async () => {
    const names = Array.from({ length: 20 }, (_, n) => `N${n}`)
    const seen = await Promise.all(
      names.map(async (name) => {
        await sandbox.updateEnv({ [name]: name })
        return await run(`echo $${name}`)
      }),
    )
    assert.deepEqual(seen, names)
    assert.equal(await run('env | grep -c "^N[0-9]*=N"'), '20')
    await sandbox.updateEnv({}, { unset: names })
    assert.equal(await run('env | grep -c "^N[0-9]*=N" || true'), '0')
  })

  test('variables of updateEnv are kept over stop, pause, archive and fork, but are not in a snapshot', async () => {
    await sandbox.updateEnv({ COLOUR: 'red' }, { unset: ['IS_SANDBOX'] })
    const seen = (inside?: Sandbox) => run('echo $COLOUR,$IS_SANDBOX', undefined, inside)
    await sandbox.pause()
    await assert.rejects(sandbox.updateEnv({ COLOUR: 'paused' }), /paused/)
    await sandbox.start()
    assert.equal(await seen(), 'red,')
    await sandbox.stop()
    await assert.rejects(sandbox.updateEnv({ COLOUR: 'stopped' }), /not started/)
    await sandbox.start()
    assert.equal(await seen(), 'red,')
    const child = await sandbox.fork()
    assert.equal(await seen(child), 'red,')
    await child.updateEnv({ COLOUR: 'child' })
    assert.deepEqual([await seen(child), await seen()], ['child,', 'red,'])
    await child.delete(60, true)
    const name = `variables-${sandbox.id}`
    await sandbox.createSnapshot(name)
    const other = await daytona.create({ snapshot: name })
    assert.equal(await seen(other), ',1')
    await other.delete(60, true)
    await daytona.snapshot.delete(await daytona.snapshot.get(name))
    await sandbox.archive()
    await until('it is archived', async () => {
      await sandbox.refreshData()
      return sandbox.state === 'archived'
    })
    await sandbox.start(120)
    assert.equal(await seen(), 'red,')
  })

  test('if an `updateEnv` call is refused, the SDK throws an error with the reason, and no variable changes', async () => {
    const before = await run('env | sort')
    await assert.rejects(sandbox.updateEnv({ 'A-B': '1' }), /not the name of a variable/)
    await assert.rejects(sandbox.updateEnv({ BIG: 'x'.repeat(70_000) }), /at most 65536 bytes/)
    await assert.rejects(sandbox.updateEnv({ NUL: 'a\0b' }), /NUL|null/i)
    assert.equal(await run('env | sort'), before)
  })
})
