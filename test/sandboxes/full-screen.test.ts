// Checks what full-screen programs show directly after a resize of their terminal. The programs are the image's `top` and this
// machine's Vim, which is copied into the sandbox.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { basename } from 'node:path'
import { after, before, suite, test } from 'node:test'
import type { Daytona, PtyHandle, Sandbox } from '@daytona/sdk'
import { until } from './box.ts'
import { DrawnScreen } from './drawn-screen.ts'
import { type Platform, platform } from './harness.ts'
import { connectTo } from './sdk-client.ts'

const sizes = [
  { cols: 132, rows: 50 },
  { cols: 85, rows: 17 },
  { cols: 100, rows: 30 },
]

/** Returns the files of this machine's Vim, with all libraries that Vim needs, so that it uses no file of the image. */
const vimOfThisMachine = () => {
  const vim = realpathSync(execFileSync('sh', ['-c', 'command -v vi'], { encoding: 'utf8' }).trim())
  assert.match(basename(vim), /^vim\./, 'vi of this machine is Vim')
  const linked = [...execFileSync('ldd', [vim], { encoding: 'utf8' }).matchAll(/(\/\S+) \(0x/g)].map(
    ([, path]) => path!,
  )
  const loader = linked.find((path) => basename(path).startsWith('ld-'))
  assert.ok(loader, 'Vim is linked dynamically')
  return { files: [vim, ...linked], line: `vim/${basename(loader)} --library-path vim vim/${basename(vim)}` }
}

suite('programs that draw on the whole screen', () => {
  let alcove: Platform
  let daytona: Daytona
  let sandbox: Sandbox
  let vim: ReturnType<typeof vimOfThisMachine>
  before(async () => {
    vim = vimOfThisMachine()
    alcove = await platform()
    daytona = connectTo(alcove)
    sandbox = await daytona.create()
    await sandbox.fs.uploadFiles(vim.files.map((path) => ({ source: path, destination: `vim/${basename(path)}` })))
    await sandbox.process.executeCommand(
      'chmod 755 vim/*; for n in $(seq 300); do printf "line %03d %0300d\\n" $n 0; done > text',
    )
  })
  after(async () => {
    await sandbox?.delete()
    await daytona?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  /** Opens a terminal. `state.screen` contains only what the program has drawn since the last resize. */
  const open = async (id: string) => {
    const state = { screen: new DrawnScreen(80, 24) }
    const pty = await sandbox.process.createPty({ id, cols: 80, rows: 24, onData: (data) => state.screen.take(data) })
    const shows = async (what: string, isRight: (lines: string[]) => boolean) => {
      await until(what, () => isRight(state.screen.lines)).catch((error: Error) => {
        throw new Error(`${error.message}:\n${state.screen.lines.join('\n')}`)
      })
    }
    const resize = async ({ cols, rows }: (typeof sizes)[number]) => {
      // Begin with an empty screen of the new size, because the program must draw everything anew after the resize.
      state.screen = new DrawnScreen(cols, rows)
      await pty.resize(cols, rows)
    }
    return { pty, shows, resize }
  }

  /** Whether the shell shows its prompt. Before the prompt, a full-screen program that is ending may discard typed text. */
  const isPrompt = (lines: string[]) => lines.some((line) => line.endsWith(':~$'))

  const endsWith0 = async (pty: PtyHandle) => {
    await pty.sendInput('exit\n')
    assert.equal((await pty.wait()).exitCode, 0)
  }

  /** Whether each row except the last shows a line of the opened file and is as wide as the screen. */
  const isText =
    ({ cols, rows }: (typeof sizes)[number]) =>
    (lines: string[]) =>
      lines
        .slice(0, rows - 1)
        .every((line, i) => line === `line ${String(i + 1).padStart(3, '0')} ${'0'.repeat(300)}`.slice(0, cols))

  test('after each resize of a terminal, vim fills the whole terminal with text', async () => {
    const { pty, shows, resize } = await open('vim')
    await pty.sendInput(`exec ${vim.line} -u NONE -i NONE -n -N --cmd 'set nowrap' text\n`)
    await shows('80x24', isText({ cols: 80, rows: 24 }))
    for (const size of sizes) {
      await resize(size)
      await shows(`${size.cols}x${size.rows}`, isText(size))
    }
    await pty.sendInput(':q\r')
    assert.equal((await pty.wait()).exitCode, 0)
  })

  test('if vim starts directly after a resize of the terminal, vim’s first screen has the new size', async () => {
    const { pty, shows, resize } = await open('vim-behind')
    for (const size of sizes) {
      await resize(size)
      await pty.sendInput(`clear; ${vim.line} -u NONE -i NONE -n -N --cmd 'set nowrap' text\n`)
      await shows(`${size.cols}x${size.rows}`, isText(size))
      await pty.sendInput(':q\r')
      await shows('the prompt', isPrompt)
    }
    await endsWith0(pty)
  })

  test('after each resize of a terminal, top fills the terminal with lines of full width', async () => {
    await sandbox.process.executeCommand(
      'for n in $(seq 80); do setsid bash -c "exec -a $(printf "%0300d" 7 | tr 0 x) sleep 1000" >/dev/null 2>&1 & done',
    )
    const { pty, shows, resize } = await open('top')
    const isTop =
      ({ cols, rows }: (typeof sizes)[number]) =>
      (lines: string[]) => {
        const head = lines.findIndex((line) => /^ +PID USER .* COMMAND$/.test(line))
        const processes = lines.slice(head + 1)
        return (
          /^top - /.test(lines[0] ?? '') &&
          head > 0 &&
          processes.length === rows - head - 1 &&
          processes.every((line) => /^ *\d+ \w/.test(line)) &&
          // `top` ends a line that is too long with `+`, and leaves the last column empty.
          processes.filter((line) => /x+\+$/.test(line) && line.length === cols - 1).length > 5
        )
      }
    // With a delay of an hour, `top` draws again only after a resize, and not every few seconds.
    await pty.sendInput('top -c -d 3600\n')
    await shows('80x24', isTop({ cols: 80, rows: 24 }))
    for (const size of sizes) {
      await resize(size)
      await shows(`${size.cols}x${size.rows}`, isTop(size))
    }
    await pty.sendInput('q')
    await shows('the prompt', isPrompt)
    await endsWith0(pty)
  })
})
