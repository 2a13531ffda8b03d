// Tests computer use with the public SDK, in the built-in snapshot `desktop`. The image of this snapshot is built once for this
// file, from Debian's mirror.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, suite, test } from 'node:test'
import type { Daytona, Sandbox } from '@daytona/sdk'
import { WebSocket } from 'ws'
import { createBox, until } from './box.ts'
import { type Platform, platform } from './harness.ts'
import { connectTo } from './sdk-client.ts'

const root = resolve(import.meta.dirname, '../..')
const guide = readFileSync(join(root, 'docs/guides/computer-use.md'), 'utf8')
const blocks = (language: string) =>
  [...guide.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(([, text]) => text ?? '')

/** A GTK program with a text field, a number field, and a button that writes the text to a file. */
const form = `import gi
gi.require_version('Gtk', '3.0')
from gi.repository import Gtk
window, box, entry, button = Gtk.Window(title='Form'), Gtk.Box(), Gtk.Entry(), Gtk.Button(label='Send')
number = Gtk.SpinButton.new_with_range(0, 100, 1)
button.connect('clicked', lambda _: open('/tmp/sent', 'w').write(f'{entry.get_text()} {number.get_value()}'))
box.add(entry), box.add(button), box.add(number), window.add(box), window.show_all()
Gtk.main()
`

/** Returns the width and height in the header of a PNG image. */
const sizeOfPng = (base64: string | undefined) => {
  const data = Buffer.from(base64 ?? '', 'base64')
  assert.equal(data.subarray(1, 4).toString(), 'PNG')
  return [data.readUInt32BE(16), data.readUInt32BE(20)]
}

suite('computerUse of the SDK', () => {
  let alcove: Platform
  let daytona: Daytona
  let sandbox: Sandbox
  const desk = mkdtempSync(join(tmpdir(), 'alcove-desktop-'))
  before(async () => {
    // Allow sandboxes to connect to Debian's mirror. The mirror may be in a private network, which is forbidden by default.
    const mirror = await lookup('deb.debian.org', { all: true, family: 4 })
    const env = { ALCOVE_OPEN_NETWORKS: mirror.map(({ address }) => address).join(',') }
    alcove = await platform({ own: true, env })
    daytona = connectTo(alcove)
    sandbox = await daytona.create({ snapshot: 'desktop' }, { timeout: 600 })
    await sandbox.computerUse.start()
  })
  after(async () => {
    await sandbox?.delete(60, true)
    await daytona?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
    rmSync(desk, { recursive: true, force: true })
  })

  const run = async (command: string) => {
    const { exitCode, result } = await sandbox.process.executeCommand(command, undefined, undefined, 60)
    assert.equal(exitCode, 0, `${command}: ${result}`)
    return result.trim()
  }
  const windows = async () => (await sandbox.computerUse.display.getWindows()).windows ?? []
  /**
   * Starts a program and waits until the program's window is active. The program runs until the test kills it or the sandbox ends.
   */
  const open = async (command: string, title: string) => {
    await run(`${command} >/dev/null 2>&1 &`)
    await until(title, async () => (await windows()).some((window) => window.title === title && window.isActive))
    return (await windows()).find((window) => window.title === title)!
  }

  test('a screenshot of a sandbox’s display is a PNG, or has the requested region, format and scale', async () => {
    const { computerUse } = sandbox
    const { displays } = await computerUse.display.getInfo()
    assert.deepEqual(displays, [{ id: 0, x: 0, y: 0, width: 1024, height: 768, isActive: true }])
    const full = await computerUse.screenshot.takeFullScreen(true)
    assert.deepEqual(sizeOfPng(full.screenshot), [1024, 768])
    assert.equal(full.sizeBytes, Buffer.from(full.screenshot!, 'base64').length)
    const region = await computerUse.screenshot.takeRegion({ x: 1000, y: 700, width: 24, height: 33 })
    assert.deepEqual(sizeOfPng(region.screenshot), [24, 33])
    const half = await computerUse.screenshot.takeCompressed({ format: 'png', scale: 0.5 })
    assert.deepEqual(sizeOfPng(half.screenshot), [512, 384])
    const jpeg = await computerUse.screenshot.takeCompressedRegion(
      { x: 0, y: 0, width: 100, height: 50 },
      { format: 'jpeg', quality: 30 },
    )
    assert.equal(Buffer.from(jpeg.screenshot!, 'base64').readUInt16BE(0), 0xffd8)
    const outside = { x: 1000, y: 0, width: 25, height: 1 }
    await assert.rejects(computerUse.screenshot.takeRegion(outside), { statusCode: 400 })
  })

  test('`mouse.move` moves the mouse to the given point, and answers 400 for a point outside of the display', async () => {
    const { mouse } = sandbox.computerUse
    assert.deepEqual(await mouse.move(123, 456), { x: 123, y: 456 })
    assert.deepEqual(await mouse.getPosition(), { x: 123, y: 456 })
    assert.deepEqual(await mouse.drag(10, 700, 40, 740), { x: 40, y: 740 })
    assert.equal(await mouse.scroll(900, 700, 'up', 3), true)
    await assert.rejects(mouse.move(1024, 0), { statusCode: 400 })
    await assert.rejects(mouse.click(-1, 0), { statusCode: 400 })
  })

  test('keyboard calls and hotkeys go to the desktop’s window on which the mouse clicked last', async () => {
    const { mouse, keyboard } = sandbox.computerUse
    const { x = 0, y = 0, width = 0 } = await open('xterm -T typing -e cat -u', 'typing')
    assert.ok(x > 0 && y > 0 && width > 100)
    await mouse.move(5, 5)
    await run('pkill -x xterm')
    const shell = "xterm -T 'a shell' -e 'stty -echo; exec cat > /tmp/typed'"
    const place = await open(shell, 'a shell')
    await mouse.click(place.x! + 20, place.y! + 20)
    await keyboard.type('$HOME "quoted" -- 100%\nÄé€日\n')
    await keyboard.press('A', ['shift'])
    await keyboard.press('enter')
    await keyboard.hotkey('ctrl+d')
    await until('the terminal has ended', async () => !(await windows()).some(({ title }) => title === 'a shell'))
    assert.equal(await run('cat /tmp/typed'), '$HOME "quoted" -- 100%\nÄé€日\nA')
  })

  test('a window title with escape sequences and line ends stays one title, and is cut at its limit', async () => {
    const title = `\u001b]0;x\u0007\n{"id":1}\t${'x'.repeat(3000)}`
    await sandbox.fs.uploadFile(
      Buffer.from(`import gi
gi.require_version('Gtk', '3.0')
from gi.repository import Gtk
window = Gtk.Window(title=${JSON.stringify(title)})
window.show_all()
Gtk.main()
`),
      '/tmp/title.py',
    )
    await run('python3 /tmp/title.py >/dev/null 2>&1 &')
    await until('the window', async () => (await windows()).some((window) => window.title?.includes('{"id":1}')))
    const all = await windows()
    assert.equal(all.length, 1)
    assert.equal(all[0]!.title, title.slice(0, 1000))
    await run('pkill -f title.py')
  })

  test('the accessibility tree of a GTK program can be read and searched, and its buttons can be pressed', async () => {
    const { accessibility } = sandbox.computerUse
    await sandbox.fs.uploadFile(Buffer.from(form), '/tmp/form.py')
    await open('python3 /tmp/form.py', 'Form')
    const { root: program, truncated } = await accessibility.getTree()
    assert.deepEqual([program?.role, program?.children?.[0]?.name, truncated], ['application', 'Form', false])
    const top = await accessibility.getTree({ scope: 'all', maxDepth: 0 })
    assert.deepEqual([top.root?.role, top.root?.children, top.truncated], ['desktop frame', undefined, true])
    const pid = Number(await run('pgrep -f form.py | head -n 1'))
    const found = await accessibility.findNodes({ scope: 'pid', pid, role: 'button', name: '^se', nameMatch: 'regex' })
    assert.deepEqual(found.matches, [])
    const byName = { scope: 'pid', pid, name: 'Send', nameMatch: 'exact', states: ['showing'] }
    const [button] = (await accessibility.findNodes(byName)).matches ?? []
    assert.ok(button?.bounds?.width && button.actions?.length === 1)
    const [entry] = (await accessibility.findNodes({ scope: 'all', role: 'text' })).matches ?? []
    const [number] = (await accessibility.findNodes({ scope: 'all', role: 'spin button' })).matches ?? []
    await accessibility.focusNode(entry!.id!)
    await accessibility.setNodeValue(entry!.id!, 'héllo')
    await accessibility.setNodeValue(number!.id!, '7')
    await accessibility.invokeNode(button.id!)
    await until('the text is sent', async () => (await run('cat /tmp/sent 2>/dev/null || true')) !== '')
    assert.match(await run('cat /tmp/sent'), /^héllo/)
    await assert.rejects(accessibility.invokeNode(button.id!, 'explode'), { statusCode: 422 })
    await assert.rejects(accessibility.focusNode(':1.99:/nothing'), { statusCode: 404 })
    await assert.rejects(accessibility.findNodes({ scope: 'all', name: '(', nameMatch: 'regex' }), { statusCode: 400 })
    await assert.rejects(accessibility.getTree({ scope: 'pid', pid: 1 }), { statusCode: 404 })
    await run('pkill -f form.py')
  })

  test('a call for an accessibility tree that is endless, cyclic or slow answers with a part of the tree', async () => {
    await sandbox.fs.uploadFile(readFileSync(join(import.meta.dirname, 'endless-accessibility.py')), '/tmp/endless.py')
    await run(
      'nohup python3 /tmp/endless.py >/tmp/endless.log 2>&1 & until grep -q ready /tmp/endless.log; do sleep 0.1; done',
    )
    const { accessibility } = sandbox.computerUse
    const pid = Number(await run('pgrep -f endless.py | head -n 1'))
    const { root: program, truncated } = await accessibility.getTree({ scope: 'pid', pid })
    assert.equal(truncated, true)
    assert.equal(program?.name?.length, 1000)
    const found = await accessibility.findNodes({ scope: 'pid', pid })
    assert.equal(found.truncated, true)
    await run('pkill -f endless.py')
  })

  test('a recording of a sandbox’s display can be played, listed, downloaded and deleted', async () => {
    const { recording, mouse } = sandbox.computerUse
    const started = await recording.start('../../a label')
    assert.deepEqual([started.status, /^-a-label_[0-9a-f]{32}\.mp4$/.test(started.fileName)], ['recording', true])
    await mouse.move(1, 1)
    await until('a second is recorded', async () => (await recording.get(started.id)).durationSeconds! > 1)
    const stopped = await recording.stop(started.id)
    assert.equal(stopped.status, 'completed')
    await assert.rejects(recording.stop(started.id), { statusCode: 409 })
    const file = join(desk, 'recording.mp4')
    await recording.download(started.id, file)
    assert.equal(readFileSync(file).length, stopped.sizeBytes)
    const probe =
      'ffprobe -v error -count_frames -show_entries stream=codec_name,width,height,nb_read_frames -of csv=p=0'
    const [codec, width, height, frames] = (await run(`${probe} '${stopped.filePath}'`)).split(',')
    assert.deepEqual([codec, width, height], ['h264', '1024', '768'])
    assert.ok(Number(frames) > 1)
    assert.deepEqual(
      (await recording.list()).recordings.map(({ id }) => id),
      [started.id],
    )
    await recording.delete(started.id)
    await assert.rejects(recording.get(started.id), { statusCode: 404 })
    await assert.rejects(recording.get('../../etc/passwd'), { statusCode: 404 })
    assert.deepEqual((await recording.list()).recordings, [])
    assert.equal(await run('ls ~/.daytona/recordings'), '')
  })

  test('a browser shows a sandbox’s desktop (noVNC) at a signed preview URL, and not at an unsigned URL', async () => {
    const { url, token } = await sandbox.getSignedPreviewUrl(6080, 600)
    const at = new URL(url)
    // Browsers connect to this machine for names below `localhost`, but some versions of Node do not. So send the name only in the
    // header `Host`.
    const answer = await once(get(`http://127.0.0.1:${at.port}/vnc.html`, { headers: { host: at.host } }), 'response')
    const page = answer[0] as IncomingMessage
    assert.deepEqual([page.statusCode, (await page.toArray()).join('').includes('noVNC')], [200, true])
    const connect = (host: string) =>
      new WebSocket(`ws://127.0.0.1:${at.port}/websockify`, ['binary'], { headers: { host: `${host}:${at.port}` } })
    const socket = connect(at.hostname)
    const [banner] = await once(socket, 'message')
    assert.equal(String(banner), 'RFB 003.008\n')
    socket.terminate()
    const refused = connect(at.hostname.replace(token, sandbox.id))
    refused.on('error', () => undefined)
    const [, { statusCode }] = await once(refused, 'unexpected-response')
    assert.ok([302, 307, 401, 403].includes(statusCode), String(statusCode))
    const listening = await run('awk \'$4 == "0A" {print $2}\' /proc/net/tcp')
    assert.deepEqual(listening.split('\n').sort(), ['0100007F:170C', '0100007F:17C0'])
  })

  test('a desktop program that dies is started again; calls can also restart it and read its logs', async () => {
    const { computerUse } = sandbox
    const pidOf = async () => (await computerUse.start()).status?.['x11vnc']?.pid
    const before = await pidOf()
    await run(`kill -9 ${before}`)
    await until('it runs again', async () => ![undefined, before].includes(await pidOf()))
    await run('pkill -f supervisor.py')
    await until('it is inactive', async () => (await computerUse.getStatus()).status === 'inactive')
    await until('it is started again', () =>
      computerUse.start().then(
        () => true,
        () => false,
      ),
    )
    assert.match((await computerUse.getProcessErrors('x11vnc')).errors ?? '', /VNC desktop is/)
    assert.equal(typeof (await computerUse.getProcessLogs('novnc')).logs, 'string')
    assert.equal((await computerUse.restartProcess('xvfb')).processName, 'xvfb')
    await until('all run', async () => (await computerUse.getStatus()).status === 'active')
    assert.deepEqual(await computerUse.getProcessStatus('openbox'), { processName: 'openbox', running: true })
    await run('python3 /tmp/form.py >/dev/null 2>&1 &')
    const find = async () => (await computerUse.accessibility.findNodes({ scope: 'all', name: 'Send' })).matches ?? []
    await until('accessibility works on the new display', async () => {
      if ((await find()).length > 0) return true
      // `findNodes` finds the form (form.py) only if the form started after the accessibility bus. So restart the form until it is
      // found.
      await run('pkill -f form.py; python3 /tmp/form.py >/dev/null 2>&1 &')
      await new Promise((resolve) => setTimeout(resolve, 1500))
      return false
    })
    await run('pkill -f form.py')
    await assert.rejects(computerUse.getProcessStatus('xfce4'), { statusCode: 404 })
  })

  test('the desktop of a sandbox and its windows keep running when the gate is killed', async () => {
    await open('xterm -T outlives -e sleep 600', 'outlives')
    await alcove.kill('gate')
    await until('the window is there', () =>
      windows()
        .then((all) => all.some(({ title }) => title === 'outlives'))
        .catch(() => false),
    )
    await run('pkill -x xterm')
  })

  test('computer-use calls answer 408 if the display hangs, and succeed after the display was restarted', async () => {
    const { computerUse } = sandbox
    const pid = (await computerUse.start()).status?.['xvfb']?.pid
    await run(`kill -STOP ${pid}`)
    await assert.rejects(computerUse.mouse.getPosition(), { statusCode: 408 })
    await computerUse.restartProcess('xvfb')
    await until('all run', async () => (await computerUse.getStatus()).status === 'active')
    await computerUse.mouse.move(9, 9)
  })

  test('after `computerUse.stop` or a sandbox’s stop, computer use answers 409 until `computerUse.start`', async () => {
    const { computerUse } = sandbox
    await computerUse.stop()
    assert.equal((await computerUse.getStatus()).status, 'inactive')
    await assert.rejects(computerUse.mouse.getPosition(), { statusCode: 409 })
    await assert.rejects(computerUse.accessibility.getTree(), { statusCode: 409 })
    await assert.rejects(computerUse.recording.start(), { statusCode: 409 })
    const left = () => run("ps -eo comm= | grep -E 'Xvfb|openbox|x11vnc|websockify|dbus|at-spi' || true")
    await until('nothing of the desktop runs', async () => (await left()) === '')
    await Promise.all([computerUse.start(), computerUse.start()])
    await sandbox.stop()
    await sandbox.start()
    await assert.rejects(computerUse.mouse.getPosition(), { statusCode: 409 })
    await computerUse.start()
    assert.equal((await computerUse.getStatus()).status, 'active')
  })

  test('without a desktop, computer-use calls answer 422 and name the missing program and the right snapshot', async () => {
    const box = await createBox(alcove)
    try {
      for (const [method, path, program] of [
        ['POST', 'start', 'xdotool'],
        ['GET', 'a11y/tree', 'python3-gi'],
      ] as const) {
        const { status, body } = await box.toolbox(method, `/computeruse/${path}`)
        assert.equal(status, 422)
        assert.match(String(body['message']), new RegExp(`no ${program}\\. The snapshot "desktop"`))
      }
      assert.deepEqual((await box.toolbox('GET', '/computeruse/status')).body, { status: 'inactive' })
    } finally {
      await box[Symbol.asyncDispose]()
    }
  })

  test('the code of the computer-use guide, joined to one file, prints the output that the guide shows', () => {
    symlinkSync(join(root, 'node_modules'), join(desk, 'node_modules'))
    writeFileSync(join(desk, 'guide.mjs'), blocks('js').join('\n'))
    const output = execFileSync(process.execPath, ['guide.mjs'], {
      cwd: desk,
      encoding: 'utf8',
      timeout: 240_000,
      env: { ...process.env, DAYTONA_API_URL: `${alcove.url}/api`, DAYTONA_API_KEY: alcove.key },
    })
    const port = String(Number(new URL(alcove.url).port) + 1)
    assert.equal(output, blocks('text').join('').replace('4601', port))
  })
})
