// Login shells must use the PATH of the image or the create call. Terminals start login shells, and coding agents run `bash -lc`.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Daytona, Sandbox } from '@daytona/sdk'
import { type Platform, platform } from './harness.ts'
import { Screen } from './screen.ts'
import { connectTo } from './sdk-client.ts'

suite('a PATH of the sandbox’s own', () => {
  const path = '/opt/venv/bin:/usr/local/bin:/usr/bin:/bin'
  let alcove: Platform
  let daytona: Daytona
  let sandbox: Sandbox
  before(async () => {
    alcove = await platform()
    daytona = connectTo(alcove)
    sandbox = await daytona.create({ envVars: { PATH: path } })
  })
  after(async () => {
    await sandbox?.delete()
    await daytona?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })
  const run = async (command: string) => (await sandbox.process.executeCommand(command)).result

  for (const shell of ['bash -lc', 'sh -lc']) {
    test(`the sandbox’s PATH comes before the entries of /etc/profile in ${shell}`, async () => {
      assert.match(await run(`${shell} 'echo $PATH'`), new RegExp(`^${path}(:|\n)`))
      assert.equal(await run(`${shell} 'set | grep -i ^_alcove'`), '')
    })
  }

  test('if a call sets PATH, the login shell that runs the call’s command has this PATH', async () => {
    const { result } = await sandbox.process.executeCommand("bash -lc 'echo $PATH'", undefined, {
      PATH: `/own:${path}`,
    })
    assert.match(result, /^\/own:\/opt\/venv\/bin:/)
  })

  test('a login shell’s PATH begins with the sandbox’s own PATH, even after `su -` or `env -i`', async () => {
    const root = await daytona.create({ user: 'root', envVars: { PATH: path } })
    try {
      const first = async (command: string) =>
        assert.match((await root.process.executeCommand(command)).result, new RegExp(`^${path}(:|\n)`), command)
      await first(`su - daytona -c 'echo $PATH'`)
      await first(`su - -s /bin/sh daytona -c 'echo $PATH'`)
      await first(`su - -c 'echo $PATH'`)
      await first(`env -i bash -lc 'echo $PATH'`)
      await first(`env -i sh -lc 'echo $PATH'`)
      // Start the login shell with an environment that contains only PATH, as an SSH server may do.
      await first(`env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/games bash -lc 'echo $PATH'`)
      assert.match((await root.process.executeCommand('env -i sh -c "command -v node"')).result, /node\n$/)
    } finally {
      await root.delete()
    }
  })

  test('in a terminal, PATH begins with the sandbox’s own PATH', async () => {
    const screen = new Screen()
    const pty = await sandbox.process.createPty({ id: 'path', onData: screen.take })
    await pty.sendInput('echo "<$PATH>"\n')
    await screen.shows(/<\/opt\/venv\/bin:/)
    await pty.kill()
  })
})
