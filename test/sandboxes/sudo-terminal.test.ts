// In a sandbox, sudo runs its command in a terminal of its own. Even so, Ctrl-C, Ctrl-Z, `fg` and `bg` must work as for any other
// command.
import { after, before, suite, test } from 'node:test'
import type { Daytona, Sandbox } from '@daytona/sdk'
import { until } from './box.ts'
import { type Platform, platform } from './harness.ts'
import { Screen } from './screen.ts'
import { connectTo } from './sdk-client.ts'

suite('sudo in a terminal', () => {
  let alcove: Platform
  let daytona: Daytona
  let sandbox: Sandbox
  before(async () => {
    alcove = await platform()
    daytona = connectTo(alcove)
    sandbox = await daytona.create()
  })
  after(async () => {
    await sandbox?.delete()
    await daytona?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  let count = 0
  /** Opens a terminal with a shell. Returns functions that type text and read the output. */
  const open = async () => {
    const screen = new Screen()
    const pty = await sandbox.process.createPty({ id: `sudo-${++count}`, cols: 100, rows: 30, onData: screen.take })
    const type = async (line: string, shows: RegExp) => {
      screen.text = ''
      await pty.sendInput(line)
      await screen.shows(shows)
    }
    await type('PS1="$ "; echo re""ady\n', /ready/)
    return { pty, screen, type }
  }

  test('the command of sudo has a terminal of its own, whose size follows the size of the caller’s terminal', async () => {
    const { pty, type } = await open()
    await type(
      'sudo sh -c "tty; stty size; id -un; stat -c %U \\$(tty); : </dev/tty && echo con""trolled"\n',
      /\/dev\/pts\/\d+\s+30 100\s+root\s+root\s+controlled/,
    )
    await type('sudo bash --norc\n', /#/)
    await pty.resize(133, 44)
    await type('echo "<$(stty size)>"\n', /<44 133>/)
    await type('exit 5\n', /\$ $/)
    await type('echo "<$?>"\n', /<5>/)
    await pty.kill()
  })

  test('Ctrl-C ends the command of sudo, not the shell; text typed while echo is off is not shown', async () => {
    const { pty, type } = await open()
    await type('sudo sh -c "echo run\\$((1)); sleep 3600"\n', /run1/)
    await type('\x03', /\$ /)
    await type('echo "<$?>"\n', /<130>/)
    await type('sudo sh -c "stty -echo; echo as\\$((1)); read x; echo; printf %s \\$x | wc -c"\n', /as1/)
    await type('secret\n', /^\s*6\s/)
    await type('echo ec""ho\n', /echo ec""ho/)
    await pty.kill()
  })

  test('Ctrl-Z stops sudo as a job of the shell, and the shell’s commands fg and bg continue sudo', async () => {
    const { pty, type } = await open()
    await type('sudo sh -c "echo run\\$((2)); while read x; do echo got \\$x; done"\n', /run2/)
    await type('\x1a', /Stopped[\s\S]*\$ /)
    await type('jobs; echo sh""ell\n', /Stopped[\s\S]*shell/)
    await type('fg\n', /sudo sh/)
    await type('word\n', /got word/)
    await type('\x04', /\$ /)
    await type('sudo sleep 0.2 &\n', /\[1\]/)
    await type('wait; echo "<$?>"\n', /<0>/)
    await pty.kill()
  })

  test('in a pipeline with sudo, each program reads its own input, and Ctrl-C ends all programs', async () => {
    const { pty, type } = await open()
    await type('sudo sh -c "seq 3; id -un" | sed s/^/-/\n', /-1\s+-2\s+-3\s+-root/)
    await type('x=$(sudo sh -c "read y; echo \\$y"); echo "<$x>"\n', /read y/)
    await type('typed\n', /<typed>/)
    await type('sh -c "echo tail\\$((1)); exec sleep 3600" | sudo cat\n', /tail1/)
    await type('\x03', /\$ /)
    await type('echo input | sudo sh -c "cat; read z </dev/tty; echo \\$z"\n', /input/)
    await type('from the terminal\n', /from the terminal\s+from the terminal/)
    await pty.kill()
  })

  test('the last output of a sudo command in a terminal is never lost', async () => {
    const { pty, type } = await open()
    for (let round = 1; round <= 10; round++) {
      await type(
        `sudo seq 3000 | tail -n 1; sudo seq 3000; echo en""d${round}\n`,
        new RegExp(`3000\\s[\\s\\S]*2999\\s+3000\\s+end${round}`),
      )
    }
    await pty.kill()
  })

  test('if a terminal is killed, a sudo command that runs in it ends', async () => {
    const { pty, type } = await open()
    await type('sudo sh -c "trap \'\' HUP TERM; echo run\\$((3)); sleep 3621; sleep 3621"\n', /run3/)
    await pty.kill()
    await until(
      'it is gone',
      async () => (await sandbox.process.executeCommand('pgrep -f "sleep 362[1]"')).exitCode === 1,
    )
  })
})
