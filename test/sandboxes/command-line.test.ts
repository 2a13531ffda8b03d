// Tests the command `alcove` of the npm package `client`, as a bundled program, with a real server. Some tests give the command a
// terminal by script(1).
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { blockBytes, writeHeader } from '#client/src/copy/tar-header.ts'
import { clientDirectory, program, type Ran, startProgram, userEnvironment } from './alcove-command.ts'
import { freePorts } from './free-ports.ts'
import { type Platform, platform } from './harness.ts'

const root = resolve(import.meta.dirname, '../..')
const desk = mkdtempSync(join(tmpdir(), 'alcove-command-line-'))
let server: Platform
let env: NodeJS.ProcessEnv

const start = (args: readonly string[], input?: string | Buffer, more: NodeJS.ProcessEnv = {}) =>
  startProgram(process.execPath, [program, ...args], { env: { ...env, ...more }, cwd: desk, ...(input && { input }) })

/** Runs `alcove` with these arguments and waits for its end. `input`: what the command reads from standard input. */
const alcove = async (args: readonly string[], input: string | Buffer = '', more: NodeJS.ProcessEnv = {}) => {
  const { child, ended } = start(args, undefined, more)
  child.stdin.end(input)
  return await ended
}

const isThere = async (name: string) => (await server.api('GET', `/sandbox/${name}`)).status === 200

const succeeds = ({ code, out, err }: Ran): string => {
  assert.equal(code, 0, err)
  return out
}

before(async () => {
  server = await platform()
  env = userEnvironment(desk, server)
  succeeds(await alcove(['sandbox', 'create', '--name', 'desk-box', '--label', 'made=by hand', '--auto-stop', '0']))
})

after(async () => {
  for (const name of ['desk-box', 'second-box', 'kept-box', 'fork-box', 'red-box'])
    await server?.api('DELETE', `/sandbox/${name}`)
  rmSync(desk, { recursive: true, force: true })
  await server?.[Symbol.asyncDispose]()
})

suite('alcove run', () => {
  test('`alcove run` passes on stdin, stdout, stderr and exit code of its command, and deletes the sandbox', async () => {
    const args = ['run', '--name', 'run-one', '-e', 'WORD=three', '--', 'sh', '-c', 'cat; echo $WORD >&2; exit 7']
    assert.deepEqual(await alcove(args, 'one\ntwo'), { code: 7, out: 'one\ntwo', err: 'three\n' })
    assert.equal(await isThere('run-one'), false)
  })

  test('after Ctrl-C `alcove run` ends its command, deletes the sandbox and exits with 130', async () => {
    const { child, until, ended } = start(['run', '--name', 'run-int', '--', 'sh', '-c', 'echo up; sleep 300'])
    await until('up')
    assert.equal(await isThere('run-int'), true)
    child.kill('SIGINT')
    assert.equal((await ended).code, 130)
    assert.equal(await isThere('run-int'), false)
  })

  test('`alcove run` deletes its sandbox after SIGTERM, even if the command in it ignores signals', async () => {
    const script = 'trap "" INT TERM; echo up; sleep 300'
    const { child, until, ended } = start(['run', '--name', 'run-deaf', '--', 'sh', '-c', script])
    await until('up')
    child.kill('SIGTERM')
    assert.equal((await ended).code, 143)
    assert.equal(await isThere('run-deaf'), false)
  })

  test('if the user interrupts `alcove run` while it makes its sandbox, no sandbox is left', async () => {
    const { child, ended } = start(['run', '--name', 'run-early', '--', 'sleep', '300'])
    while (child.exitCode === null && !(await isThere('run-early')));
    child.kill('SIGINT')
    assert.equal((await ended).code, 130)
    assert.equal(await isThere('run-early'), false)
  })

  test('`alcove run` ends its command and deletes the sandbox if nobody reads the output any more', async () => {
    const { child, until, ended } = start(['run', '--name', 'run-pipe', '--', 'yes'])
    await until('y\n')
    child.stdout.destroy()
    assert.equal((await ended).code, 141)
    assert.equal(await isThere('run-pipe'), false)
  })

  test('`alcove run` deletes its sandbox even if the command cannot be run; with --keep, the sandbox stays', async () => {
    const none = await alcove(['run', '--name', 'run-none', '--', '/no/such/program'])
    assert.equal(none.code, 127)
    assert.equal(await isThere('run-none'), false)
    assert.equal((await alcove(['run', '--name', 'kept-box', '--keep', '--', 'true'])).code, 0)
    assert.equal(await isThere('kept-box'), true)
  })

  test('`alcove run` refuses the name of an existing sandbox, and does not delete that sandbox', async () => {
    const { code, err } = await alcove(['run', '--name', 'desk-box', '--', 'true'])
    assert.equal(code, 65, err)
    assert.equal(await isThere('desk-box'), true)
  })

  test('on the server’s machine, `./alcove run` needs no login and no API key, but only the option --data', async () => {
    const args = ['run', '--data', server.data, '--', 'uname', '-s']
    const { ended, child } = startProgram(join(root, 'alcove'), args, { env: userEnvironment(desk), cwd: desk })
    child.stdin.end()
    assert.equal(succeeds(await ended), 'Linux\n')
  })
})

suite('alcove exec', () => {
  test('`alcove exec` passes on all arguments unchanged, and all bytes of large inputs and outputs', async () => {
    const words = ["it's", '$HOME', '', 'a b', '*', '-n', '\\']
    const printed = succeeds(await alcove(['exec', 'desk-box', '--', 'printf', '%s|', ...words]))
    assert.equal(printed, words.map((word) => `${word}|`).join(''))
    const bytes = Buffer.alloc(
      2_000_000,
      Uint8Array.from({ length: 251 }, (_, at) => at),
    )
    const { out } = await alcove(['exec', 'desk-box', 'cat'], bytes)
    assert.ok(Buffer.from(out, 'latin1').equals(bytes))
  })

  test('`alcove exec` exits with the code of its command, or with 128 plus the signal that ended the command', async () => {
    const code = async (script: string) => (await alcove(['exec', 'desk-box', '--', 'sh', '-c', script])).code
    assert.deepEqual([await code('exit 3'), await code('kill -9 $$')], [3, 137])
  })

  test('each kind of failure of `alcove` has an exit code of its own, and the error names the request id', async () => {
    const cases: [args: string[], env: NodeJS.ProcessEnv, code: number, sentence: RegExp][] = [
      [['exec', 'no-such-box', '--', 'true'], {}, 66, /^alcove: .*no-such-box not found.* \(request \S+\)\n$/],
      [['exec', 'desk-box', '--'], {}, 64, /Give a command to run/],
      [['sandbox', 'create', '--cpu', 'many'], {}, 64, /must be a whole number/],
      [['no-such-command'], {}, 64, /unknown command/],
      [['sandbox', 'list'], { ALCOVE_API_KEY: 'wrong' }, 77, /^alcove: .* \(request \S+\)\n$/],
      [['sandbox', 'list'], { ALCOVE_API_KEY: '' }, 77, /^alcove: You are not signed in/],
      [['sandbox', 'list'], { ALCOVE_API_URL: 'http://127.0.0.1:9' }, 69, /does not answer/],
      [['sandbox', 'create', '--snapshot', 'none'], {}, 65, /none not found|no such snapshot/],
      [['cp', '/no/such/file', 'desk-box:'], {}, 74, /There is no file or directory \/no\/such\/file on this machine/],
    ]
    for (const [args, more, code, sentence] of cases) {
      const ran = await alcove(args, '', more)
      assert.equal(ran.code, code, `${args.join(' ')}: ${ran.err}`)
      assert.match(ran.err, sentence)
    }
  })
})

suite('alcove sandbox, snapshot and key', () => {
  test('`alcove sandbox` lists, shows, stops, starts, pauses, forks and deletes sandboxes by name', async () => {
    const id = succeeds(await alcove(['sandbox', 'create', '--name', 'second-box'])).trim()
    const list = JSON.parse(succeeds(await alcove(['sandbox', 'list', '--json', '--label', 'made=by hand'])))
    assert.deepEqual(
      list.map(({ name }: { name: string }) => name),
      ['desk-box'],
    )
    assert.match(succeeds(await alcove(['sandboxes'])), new RegExp(`^${id} +second-box +started +1 cpu`, 'm'))
    assert.match(succeeds(await alcove(['sandbox', 'info', 'second-box'])), new RegExp(`^id +${id}$`, 'm'))
    const stateAfter = async (verb: string) => {
      const [sandbox] = JSON.parse(succeeds(await alcove(['sandbox', verb, 'second-box', '--json'])))
      return sandbox.state
    }
    const verbs = ['stop', 'start', 'pause', 'resume']
    const states: string[] = []
    for (const verb of verbs) states.push(await stateAfter(verb))
    assert.deepEqual(states, ['stopped', 'started', 'paused', 'started'])
    succeeds(await alcove(['sandbox', 'fork', 'second-box', '--name', 'fork-box']))
    const deleted = await alcove(['sandbox', 'delete', 'second-box', 'no-such-box', 'fork-box', '--json'])
    assert.deepEqual([deleted.code, JSON.parse(deleted.out)], [66, ['second-box', 'fork-box']])
    assert.equal(await isThere('second-box'), false)
  })

  test('`alcove sandbox` prints control characters in labels as escapes', async () => {
    const { status } = await server.api('POST', '/sandbox', {
      name: 'red-box',
      labels: { color: 'a\u001b[31m\u009bb' },
    })
    assert.equal(status, 200)
    for (const args of [['list'], ['info', 'red-box'], ['list', '--json']]) {
      const shown = Buffer.from(succeeds(await alcove(['sandbox', ...args])), 'latin1').toString()
      assert.doesNotMatch(shown.replaceAll('\n', ''), /\p{Cc}/u)
      assert.match(shown, /color/)
    }
  })

  test('`alcove snapshot` makes and deletes snapshots, and `alcove run` can start a sandbox from a snapshot', async () => {
    succeeds(await alcove(['exec', 'desk-box', '--', 'sh', '-c', 'echo kept > ~/in-snapshot']))
    assert.equal(succeeds(await alcove(['snapshot', 'create', 'cl-shot', '--sandbox', 'desk-box'])), 'cl-shot\n')
    const ran = await alcove(['run', '--snapshot', 'cl-shot', '--', 'sh', '-c', 'cat ~/in-snapshot'])
    assert.equal(succeeds(ran), 'kept\n')
    assert.match(succeeds(await alcove(['snapshot', 'list'])), /^cl-shot +active/m)
    assert.deepEqual(JSON.parse(succeeds(await alcove(['snapshot', 'rm', 'cl-shot', '--json']))), ['cl-shot'])
  })

  test('`alcove key` makes an API key with few permissions, which works until the key is deleted', async () => {
    const made = JSON.parse(succeeds(await alcove(['key', 'create', 'cl-key', '--expires', '1d', '--json'])))
    assert.deepEqual(made.permissions.sort(), ['delete:sandboxes', 'write:sandboxes'])
    const asKey = { ALCOVE_API_KEY: made.value as string }
    succeeds(await alcove(['exec', 'desk-box', 'true'], '', asKey))
    assert.match(succeeds(await alcove(['key', 'list'])), /^cl-key +dtn\*+/m)
    succeeds(await alcove(['key', 'delete', 'cl-key']))
    assert.equal((await alcove(['sandbox', 'list'], '', asKey)).code, 77)
  })
})

suite('alcove cp', () => {
  test('Ctrl-C during an `alcove cp` from a sandbox leaves no incomplete file', async () => {
    const empty = mkdtempSync(join(desk, 'interrupted-'))
    succeeds(await alcove(['exec', 'desk-box', '--', 'truncate', '-s', '8G', 'endless']))
    const { child, ended } = start(['cp', 'desk-box:endless', empty])
    while (child.exitCode === null && readdirSync(empty).length === 0) await delay(20)
    child.kill('SIGINT')
    assert.equal((await ended).code, 130)
    assert.deepEqual(readdirSync(empty), [])
    succeeds(await alcove(['exec', 'desk-box', '--', 'rm', 'endless']))
  })

  test('`alcove cp` copies a directory to a sandbox and back, with odd names, links and permissions', async () => {
    const source = join(desk, 'tree')
    mkdirSync(join(source, 'sub/empty'), { recursive: true })
    const names = ['plain', 'odd\nname', '-rf', ' ü ☃ ', 'n'.repeat(180), '\u001b[31m']
    for (const name of names) writeFileSync(join(source, 'sub', name), name)
    writeFileSync(join(source, 'run'), '#!/bin/sh\n', { mode: 0o755 })
    writeFileSync(join(source, 'large'), Buffer.alloc(1_000_000, 'x'))
    symlinkSync('run', join(source, 'link'))
    succeeds(await alcove(['cp', 'tree', 'desk-box:copied']))
    assert.equal(succeeds(await alcove(['exec', 'desk-box', '--', 'stat', '-c', '%a', 'copied/run'])), '755\n')
    succeeds(await alcove(['cp', 'desk-box:copied', 'back']))
    assert.deepEqual(readdirSync(join(desk, 'back/sub')).sort(), [...names, 'empty'].sort())
    for (const name of names) assert.equal(readFileSync(join(desk, 'back/sub', name), 'utf8'), name)
    assert.ok(readFileSync(join(desk, 'back/large')).equals(readFileSync(join(source, 'large'))))
    assert.equal(readlinkSync(join(desk, 'back/link')), 'run')
    // `.` and `back` are existing directories, so `alcove cp` puts the copy into the directory, under the name of the source.
    succeeds(await alcove(['cp', 'desk-box:copied/run', '.']))
    succeeds(await alcove(['cp', 'desk-box:copied', 'back']))
    assert.ok(existsSync(join(desk, 'run')) && existsSync(join(desk, 'back/copied/run')))
  })

  test('`alcove cp` writes nothing outside of its target, even if the tar program in the sandbox is hostile', async () => {
    const text = Buffer.alloc(blockBytes, 'evil')
    const header = { kind: 'file', size: text.length, mode: 0o644, mtime: 0, linkName: Buffer.alloc(0) } as const
    const evil = ['../evil', join(desk, 'evil')].map((name) =>
      Buffer.concat([writeHeader({ ...header, name: Buffer.from(name) }), text, Buffer.alloc(2 * blockBytes)]),
    )
    const script =
      'mkdir -p ~/.local/bin ~/data; cat > ~/evil.tar; printf "#!/bin/sh\\ncat ~/evil.tar\\n" > ~/.local/bin/tar; chmod +x ~/.local/bin/tar'
    try {
      for (const archive of evil) {
        succeeds(await alcove(['exec', 'desk-box', '--', 'sh', '-c', script], archive))
        const { code, err } = await alcove(['cp', 'desk-box:data', 'got'])
        assert.deepEqual([code, /outside the target directory/.test(err)], [65, true], err)
        assert.equal(existsSync(join(desk, 'evil')), false)
      }
    } finally {
      await alcove(['exec', 'desk-box', 'rm', '.local/bin/tar'])
    }
  })
})

/** A Python server for the sandbox. It answers HTTP calls, and sends the first message of each WebSocket back to the client. */
const echoServer = `
import base64, hashlib, http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        key = self.headers.get('Sec-WebSocket-Key')
        if key is None:
            self.send_response(200); self.end_headers(); self.wfile.write(b'hello'); return
        accept = base64.b64encode(hashlib.sha1((key + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').encode()).digest()).decode()
        self.wfile.write(('HTTP/1.1 101 Switching\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: ' + accept + '\\r\\n\\r\\n').encode())
        head = self.rfile.read(2); mask = self.rfile.read(4); size = head[1] & 127
        data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(self.rfile.read(size)))
        self.wfile.write(bytes([0x81, size]) + data); self.close_connection = True
server = http.server.ThreadingHTTPServer(('127.0.0.1', 3000), Handler)
print('listening', flush=True)
server.serve_forever()
`

suite('alcove port', () => {
  test('`alcove port` forwards HTTP and WebSockets, and ends after Ctrl-C', async () => {
    const serving = start(['exec', 'desk-box', '--', 'python3', '-c', echoServer], '')
    await serving.until('listening')
    const forwarding = start(['port', 'desk-box', '3000:0', '3999:0', '--json'])
    try {
      await forwarding.until('3999')
      const [open, closed] = [...forwarding.said().out.matchAll(/"port": (\d+)/g)].map(([, port]) => Number(port))
      assert.equal(await (await fetch(`http://127.0.0.1:${open}/`)).text(), 'hello')
      const socket = new WebSocket(`ws://127.0.0.1:${open}/`)
      await once(socket, 'open')
      socket.send('echo me')
      const [echoed] = await once(socket, 'message')
      assert.equal(String(echoed), 'echo me')
      socket.terminate()
      const refused = connect(closed ?? 0, '127.0.0.1')
      refused.on('error', () => {})
      await once(refused, 'close')
      await forwarding.until('Nothing listens on port 3999')
    } finally {
      forwarding.child.kill('SIGINT')
      serving.child.kill('SIGINT')
    }
    assert.equal((await forwarding.ended).code, 130)
    assert.equal((await serving.ended).code, 130)
  })
})

/**
 * Starts a proxy between `alcove` and the real server. A test can close all connections to toolboxes that go through this proxy.
 */
const startCutter = async () => {
  const gate = new Set<Socket>()
  const place = createServer((socket) => {
    const real = connect(Number(new URL(server.url).port) + 1, '127.0.0.1')
    for (const one of [socket, real]) one.on('error', () => {})
    socket.pipe(real).pipe(socket)
    gate.add(socket)
  }).listen(0, '127.0.0.1')
  await once(place, 'listening')
  const toolboxes = `http://127.0.0.1:${(place.address() as AddressInfo).port}/toolbox`
  const front = createHttpServer(async (request, response) => {
    const { method = 'GET', headers } = request
    const authorization = headers.authorization ?? ''
    const reply = await fetch(`${server.url}${request.url}`, { method, headers: { authorization } })
    response.end((await reply.text()).replace(/http:[^"]*\/toolbox/, toolboxes))
  }).listen(0, '127.0.0.1')
  await once(front, 'listening')
  return {
    url: `http://127.0.0.1:${(front.address() as AddressInfo).port}`,
    cut: () => {
      for (const socket of gate) socket.destroy()
    },
    [Symbol.dispose]: () => {
      for (const socket of gate) socket.destroy()
      place.close()
      front.closeAllConnections()
      front.close()
    },
  }
}

suite('alcove shell', () => {
  /** Starts `alcove shell` in a terminal of 33 lines and 111 columns, whose name is printed before the start. */
  const startShell = (words: string, more: NodeJS.ProcessEnv = {}) => {
    const inside = `tty; stty rows 33 cols 111; '${process.execPath}' '${program}' shell ${words}; code=$?; stty -a; exit $code`
    const command = ['-qec', inside, '/dev/null']
    return startProgram('script', command, { env: { ...env, TERM: 'xterm', SHELL: '/bin/sh', ...more }, cwd: desk })
  }

  test('`alcove shell` has the size of the user’s terminal, also after a resize, and returns the exit code', async () => {
    const shell = startShell('desk-box')
    await shell.until('daytona@')
    shell.child.stdin.write('stty size; echo term-$TERM\n')
    await shell.until('33 111')
    await shell.until('term-xterm')
    const [, terminal = ''] = /(\/dev\/pts\/\d+)/.exec(shell.said().out) ?? []
    succeeds(await startProgram('stty', ['-F', terminal, 'rows', '44', 'cols', '122'], { env }).ended)
    shell.child.stdin.write('until [ "$(stty size)" = "44 122" ]; do sleep 0.1; done; echo size-$((40+4))\n')
    await shell.until('size-44')
    shell.child.stdin.write(
      `sh -c 'trap "echo caught-\\$((6*7)); exit" INT; echo waits-$((1+1)); while :; do sleep 0.1; done'\n`,
    )
    await shell.until('waits-2')
    shell.child.stdin.write('\u0003')
    await shell.until('caught-42')
    shell.child.stdin.write('exit 9\n')
    const { code, out } = await shell.ended
    assert.equal(code, 9, out)
    // After `alcove shell`, the user's terminal must again pass on whole lines (`icanon`), as before the command.
    assert.match(out, / icanon/)
    assert.doesNotMatch(out, / -icanon/)
  })

  test('`alcove shell` reports a lost connection, restores the user’s terminal, and can attach again', async () => {
    using cutter = await startCutter()
    const shell = startShell('desk-box', { ALCOVE_API_URL: cutter.url })
    await shell.until('daytona@')
    shell.child.stdin.write('mark=found; echo ready-$((40+2))\n')
    await shell.until('ready-42')
    cutter.cut()
    const { code, out } = await shell.ended
    assert.equal(code, 69, out)
    assert.match(out, /The connection to the terminal was lost/)
    assert.match(out, / icanon/)
    const [, id = ''] = /--attach (\S+)/.exec(out) ?? []
    const again = startShell(`desk-box --attach ${id}`)
    await again.until('ready-42')
    again.child.stdin.write('echo again-$mark; exit 4\n')
    await again.until('again-found')
    assert.equal((await again.ended).code, 4)
  })

  test('without a terminal `alcove shell` does not run, and its error suggests `alcove exec`', async () => {
    const { code, err } = await alcove(['shell', 'desk-box'])
    assert.deepEqual([code, /alcove exec/.test(err)], [64, true])
  })
})

suite('alcove logs and completion', () => {
  test('`alcove logs` prints nothing for a sandbox without an entrypoint, and ends even with --follow', async () => {
    assert.equal(succeeds(await alcove(['logs', 'desk-box'])), '')
    assert.equal(succeeds(await alcove(['logs', '-f', 'desk-box'])), '')
    assert.deepEqual(JSON.parse(succeeds(await alcove(['logs', '--json', 'desk-box']))), { stdout: '', stderr: '' })
  })

  test('with the script of `alcove completion bash`, bash completes commands and options', async () => {
    writeFileSync(join(desk, 'completion'), succeeds(await alcove(['completion', 'bash'])))
    const complete = async (...words: string[]) => {
      const given = words.map((word) => `'${word}'`).join(' ')
      const script = `. ./completion; COMP_WORDS=(alcove ${given}); COMP_CWORD=${words.length}; _alcove; echo "\${COMPREPLY[*]}"`
      return succeeds(await startProgram('bash', ['-ec', script], { env, cwd: desk }).ended)
        .trim()
        .split(' ')
    }
    assert.deepEqual(await complete('sna'), ['snapshot'])
    assert.deepEqual(await complete('sandbox', 'st'), ['start', 'stop'])
    assert.deepEqual(await complete('run', '--sn'), ['--snapshot'])
    assert.deepEqual(await complete('sandbox', 'list', '--st'), ['--state'])
    for (const shell of ['zsh', 'fish']) assert.match(succeeds(await alcove(['completion', shell])), /snapshot/)
  })
})

suite('the package of the command line', () => {
  const npm = (name: 'npm' | 'npx', args: string[], cwd: string, input?: string) => {
    const cli = join(root, `node_modules/npm/bin/${name}-cli.js`)
    const settings = {
      npm_config_cache: join(desk, 'npm'),
      npm_config_offline: 'true',
      npm_config_update_notifier: 'false',
    }
    const path = `${join(process.execPath, '..')}:${env['PATH']}`
    return startProgram(process.execPath, [cli, ...args], {
      env: { ...env, ...settings, PATH: path },
      cwd,
      ...(input !== undefined && { input }),
    }).ended
  }
  const isRecent = (path: string) => existsSync(path) && /^v[2-9]\d/.test(execFileSync(path, ['--version']).toString())
  /** Path of a Node of this machine with at least version 20, or else of the Node of this checkout. */
  const otherNode = ['/usr/bin/node', '/usr/local/bin/node'].find(isRecent) ?? process.execPath

  test('the npm package of the command line needs no other packages, and runs with the machine’s Node', async () => {
    const empty = mkdtempSync(join(desk, 'empty-'))
    const packed = await npm('npm', ['pack', '--silent', '--pack-destination', empty], clientDirectory)
    const tarball = succeeds(packed).trim()
    succeeds(await npm('npm', ['install', '--no-audit', '--no-fund', `./${tarball}`], empty))
    assert.deepEqual(
      readdirSync(join(empty, 'node_modules')).filter((name) => !name.startsWith('.')),
      ['@alcove'],
    )
    const installed = join(empty, 'node_modules/@alcove/client/bin/alcove.js')
    const args = [installed, 'run', '--', 'python3', '-c', 'print(6*7)']
    const ran = startProgram(otherNode, args, { env, cwd: empty, input: '\n' })
    assert.equal(succeeds(await ran.ended), '42\n')
  })

  test('`npx --package` with the path of the folder `client` runs `alcove` from any working directory', async () => {
    const args = ['--yes', '--package', clientDirectory, 'alcove', 'run', '--', 'python3', '-c', 'print(6*7)']
    assert.equal(succeeds(await npm('npx', args, desk, '\n')), '42\n')
  })
})

suite('the guide of the command line', () => {
  test('all commands in the guide on the command line run unchanged', async () => {
    const page = readFileSync(join(root, 'docs/guides/command-line.md'), 'utf8')
    const blocks = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, text]) => text ?? '')
    assert.ok(blocks.length > 4)
    const port = await freePorts(1)
    const home = mkdtempSync(join(desk, 'guide-'))
    mkdirSync(join(home, 'bin'))
    writeFileSync(join(home, 'bin/alcove'), `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`, {
      mode: 0o755,
    })
    const given = { ...env, PATH: `${join(home, 'bin')}:${env['PATH']}` }
    const script = blocks.join('\n').replaceAll('8123', String(port))
    const { code, out, err } = await startProgram('bash', ['-ec', script], { env: given, cwd: home, input: '\n' }).ended
    assert.equal(code, 0, err)
    for (const text of ['42\n', 'from here\nvalue\nit ended with 3\n', 'my-box  started', '<h1>hi</h1>', 'hello\n'])
      assert.ok(out.includes(text), `${text} is not in ${out}`)
    assert.equal(readFileSync(join(home, 'greeting'), 'utf8'), 'hello\n')
    assert.match(readFileSync(join(home, 'key'), 'utf8'), /^dtn_\w+\n$/)
  })
})
