// The PATH of an image or a sandbox reaches login shells too: terminals are such, and agents run everything by `bash -lc`.
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
    test(`comes first in ${shell}, and what /etc/profile adds comes behind it`, async () => {
      assert.match(await run(`${shell} 'echo $PATH'`), new RegExp(`^${path}(:|\n)`))
      assert.equal(await run(`${shell} 'set | grep -i ^_alcove'`), '')
    })
  }

  test('of the one call counts for the login shell of that call', async () => {
    const { result } = await sandbox.process.executeCommand("bash -lc 'echo $PATH'", undefined, {
      PATH: `/own:${path}`,
    })
    assert.match(result, /^\/own:\/opt\/venv\/bin:/)
  })

  test('comes first in a terminal', async () => {
    const screen = new Screen()
    const pty = await sandbox.process.createPty({ id: 'path', onData: screen.take })
    await pty.sendInput('echo "<$PATH>"\n')
    await screen.shows(/<\/opt\/venv\/bin:/)
    await pty.kill()
  })
})
