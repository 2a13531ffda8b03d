// Tests SSH to a real sandbox with OpenSSH's programs, with programs that use OpenSSH, such as rsync, and with the SDK.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { Daytona, Sandbox } from '@daytona/sdk'
import { freePorts } from './free-ports.ts'
import { type Platform, platform } from './harness.ts'
import { connectTo } from './sdk-client.ts'

type Ran = { code: number | null; out: string; err: string }

let alcove: Platform
let daytona: Daytona
let box: Sandbox
let token: string
/** Path of an SSH configuration file for the test. All OpenSSH programs read only this file. */
let config: string
const desk = mkdtempSync(join(tmpdir(), 'alcove-ssh-'))
const children = new Set<ChildProcess>()

const begin = (command: string, args: string[], env: Record<string, string> = {}) => {
  const child = spawn(command, args, { env: { ...process.env, ...env }, cwd: desk, timeout: 60_000 })
  children.add(child)
  child.once('close', () => children.delete(child))
  child.stdin.on('error', () => undefined)
  return child
}

const run = async (command: string, args: string[], { input = '' as string | Buffer, env = {} } = {}): Promise<Ran> => {
  const child = begin(command, args, env)
  const [out, err]: [Buffer[], Buffer[]] = [[], []]
  child.stdout.on('data', (data: Buffer) => out.push(data))
  child.stderr.on('data', (data: Buffer) => err.push(data))
  child.stdin.end(input)
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, out: Buffer.concat(out).toString('latin1'), err: Buffer.concat(err).toString() }
}

const ssh = (
  command: string,
  options: { input?: string | Buffer; env?: Record<string, string>; more?: string[] } = {},
) => run('ssh', ['-F', config, ...(options.more ?? []), 'box', command], options)

/** Waits until something listens on a port of this machine. */
const untilListening = async (port: number) => {
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    const isOpen = await new Promise((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    })
    socket.destroy()
    if (isOpen) return
    await pause(50)
  }
}

const end = async (child: ChildProcess) => {
  const closed = once(child, 'close')
  child.kill('SIGTERM')
  await closed
}

const shownBy = async (child: ChildProcess, text: string): Promise<string> => {
  let shown = ''
  for await (const data of child.stdout!.iterator({ destroyOnReturn: false })) {
    shown += data
    if (shown.includes(text)) return shown
  }
  throw new Error(`it ended without ${JSON.stringify(text)}: ${shown}`)
}

const configFor = (name: string, user: string) => {
  const path = join(desk, name)
  const words = [
    'Host box',
    'HostName 127.0.0.1',
    `Port ${Number(new URL(alcove.url).port) + 2}`,
    `User ${user}`,
    `UserKnownHostsFile ${join(desk, 'known_hosts')}`,
    'StrictHostKeyChecking yes',
    'BatchMode yes',
    'IdentityFile none',
    'LogLevel ERROR',
    'SendEnv GREETING',
  ]
  writeFileSync(path, `${words.join('\n')}\n`)
  return path
}

before(async () => {
  alcove = await platform()
  daytona = connectTo(alcove)
  box = await daytona.create({ autoStopInterval: 0 })
  token = (await box.createSshAccess()).token
  const { body } = await alcove.api('GET', '/config')
  const hostKey = Buffer.from(String(body['sshGatewayPublicKey']), 'base64').toString()
  writeFileSync(join(desk, 'known_hosts'), `[127.0.0.1]:${Number(new URL(alcove.url).port) + 2} ${hostKey}\n`)
  config = configFor('config', token)
})

after(async () => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(desk, { recursive: true, force: true })
  await box?.delete()
  await alcove?.[Symbol.asyncDispose]()
})

suite('createSshAccess, validateSshAccess and revokeSshAccess of the SDK', () => {
  test('the SSH command that the SDK returns opens a shell in the sandbox until the SSH token is revoked', async () => {
    const access = await box.createSshAccess(5)
    assert.equal(access.sandboxId, box.id)
    const port = Number(new URL(alcove.url).port) + 2
    assert.equal(access.sshCommand, `ssh -p ${port} ${access.token}@127.0.0.1`)
    assert.deepEqual(await box.validateSshAccess(access.token), { valid: true, sandboxId: box.id })

    const child = begin('ssh', ['-F', configFor('revoked', access.token), 'box', 'echo ready; exec sleep 60'])
    const closed = once(child, 'close')
    let err = ''
    child.stderr.on('data', (data) => {
      err += data
    })
    await shownBy(child, 'ready')
    await box.revokeSshAccess(access.token)
    const [code] = await closed
    assert.deepEqual([code, err], [255, 'alcove: The SSH token was revoked or has expired.\n'])
    assert.equal((await box.validateSshAccess(access.token)).valid, false)
    const again = await run('ssh', ['-F', configFor('revoked', access.token), 'box', 'true'])
    assert.equal(again.code, 255)
    assert.match(again.err, /Permission denied/)
  })
})

suite('ssh', () => {
  test('a command over SSH gets stdin and variables from ssh; ssh returns its stdout, stderr and exit code', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
    const command = 'cat; echo "$GREETING $(whoami) $DAYTONA_SANDBOX_ID" >&2; exit 7'
    const { code, out, err } = await ssh(command, { input: bytes, env: { GREETING: 'hello' } })
    assert.deepEqual([code, out, err], [7, bytes.toString('latin1'), `hello daytona ${box.id}\n`])
  })

  test('if a signal ends an SSH command, ssh exits with 255; if ssh disconnects, the command gets SIGHUP', async () => {
    assert.equal((await ssh('kill -TERM $$')).code, 255)
    const child = begin('ssh', [
      '-F',
      config,
      'box',
      'trap "echo hup >~/hup; exit" HUP; echo ready; while :; do sleep 0.1; done',
    ])
    await shownBy(child, 'ready')
    await end(child)
    const { out } = await ssh('until [ -s ~/hup ]; do sleep 0.1; done; cat ~/hup')
    assert.equal(out, 'hup\n')
  })

  test('an SSH terminal is a login shell with the client’s size and TERM, and gets resizes and Ctrl-C', async () => {
    // A Python program runs ssh in a terminal, and changes the size of this terminal while ssh runs.
    const script = `
import fcntl, os, pty, select, struct, sys, termios
pid, terminal = pty.fork()
if pid == 0:
    os.environ['TERM'] = 'vt220'
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 33, 91, 0, 0))
    os.execvp('ssh', ['ssh', '-F', ${JSON.stringify(config)}, '-tt', 'box'])
shown = b''
def until(text):
    global shown
    while text not in shown:
        shown += os.read(terminal, 65536)
    shown = shown.split(text, 1)[1]
def type(text):
    os.write(terminal, text)
until(b'$ ')
type(b'echo "<$(stty size) $TERM $0>"\\n')
until(b'<33 91 vt220 ')
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', 20, 50, 0, 0))
type(b'until [ "$(stty size)" = "20 50" ]; do sleep 0.1; done; echo "<re""sized>"\\n')
until(b'<resized>')
# The shell ignores a Ctrl-C that arrives before its child is in the foreground. The child says that it is.
type(b'sh -c "echo \\\\<sle""eping\\\\>; exec sleep 60"\\n')
until(b'<sleeping>')
type(b'\\x03')
type(b'echo "<al""ive>"\\n')
until(b'<alive>')
type(b'exit 4\\n')
try:
    while os.read(terminal, 65536): pass
except OSError: pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`
    const { code, err } = await run('python3', ['-c', script])
    assert.equal(code, 4, err)
  })
})

suite('programs that use ssh', () => {
  const bytes = Buffer.alloc(5_000_000, 'alcove and ssh ')
  before(() => writeFileSync(join(desk, 'large'), bytes))

  const isSame = (name: string) => assert.ok(readFileSync(join(desk, name)).equals(bytes), name)

  test('scp copies files in both directions, over SFTP and over the old scp protocol', async () => {
    for (const more of [[], ['-O']]) {
      const there = await run('scp', ['-F', config, ...more, 'large', 'box:scp-large'])
      assert.equal(there.code, 0, there.err)
      const back = await run('scp', ['-F', config, ...more, 'box:scp-large', 'scp-back'])
      assert.equal(back.code, 0, back.err)
      isSame('scp-back')
    }
  })

  test('sftp runs a batch of commands in a sandbox; if the image lacks sftp-server, sftp’s error says so', async () => {
    const batch = 'put large sftp-large\nrename sftp-large sftp-renamed\nget sftp-renamed sftp-back\nls\n'
    const { code, out, err } = await run('sftp', ['-F', config, '-b', '-', 'box'], { input: batch })
    assert.equal(code, 0, err)
    assert.match(out, /sftp-renamed/)
    isSame('sftp-back')
    const server = '/usr/lib/openssh/sftp-server'
    await ssh(`sudo mv ${server} ${server}.away`)
    try {
      const without = await run('sftp', ['-F', config, '-b', '-', 'box'], { input: 'ls\n' })
      assert.match(without.err, /alcove: This sandbox has no sftp-server\..*openssh-sftp-server/)
      assert.notEqual(without.code, 0)
    } finally {
      await ssh(`sudo mv ${server}.away ${server}`)
    }
  })

  test('rsync copies a directory in both directions over SSH', async () => {
    mkdirSync(join(desk, 'tree/deep'), { recursive: true })
    writeFileSync(join(desk, 'tree/deep/file'), bytes)
    const over = ['-a', '-e', `ssh -F ${config}`]
    const there = await run('rsync', [...over, 'tree/', 'box:tree/'])
    assert.equal(there.code, 0, there.err)
    const back = await run('rsync', [...over, 'box:tree/', 'tree-back/'])
    assert.equal(back.code, 0, back.err)
    isSame('tree-back/deep/file')
  })

  test('git clones a repository in the sandbox over SSH, and pushes to that repository', async () => {
    const made = await ssh('git init -q --bare repository && git -C repository config receive.denyCurrentBranch ignore')
    assert.equal(made.code, 0, made.err)
    const env = { GIT_SSH_COMMAND: `ssh -F ${config}`, GIT_CONFIG_GLOBAL: '/dev/null' }
    const steps = [
      'git clone -q box:repository cloned',
      'git -C cloned -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m "from outside"',
      'git -C cloned push -q origin HEAD:main',
    ]
    const { code, err } = await run('sh', ['-ec', steps.join('\n')], { env })
    assert.equal(code, 0, err)
    assert.equal((await ssh('git -C repository log --format=%s main')).out, 'from outside\n')
  })

  test('sshfs mounts a sandbox over SSH', {
    skip: !existsSync('/dev/fuse') && 'this machine has no /dev/fuse',
  }, async () => {
    const mount = join(desk, 'mount')
    mkdirSync(mount)
    const mounted = await run('sshfs', ['-F', config, 'box:', mount])
    assert.equal(mounted.code, 0, mounted.err)
    try {
      writeFileSync(join(mount, 'sshfs-large'), bytes)
      assert.equal((await ssh('wc -c < sshfs-large')).out.trim(), String(bytes.length))
      isSame('mount/sshfs-large')
    } finally {
      const { code, err } = await run('fusermount3', ['-u', mount])
      assert.equal(code, 0, err)
    }
  })
})

suite('forwarded ports', () => {
  test('`ssh -L` reaches a server on the sandbox’s loopback address, and no address outside the sandbox', async () => {
    await ssh(
      'mkdir -p site && echo found > site/page && cd site && (setsid python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 &)',
    )
    const first = await freePorts(3)
    const child = begin('ssh', [
      ...['-F', config, '-N', '-L', `${first}:localhost:8123`, '-L', `${first + 1}:198.51.100.1:80`],
      ...['-L', `${first + 2}:localhost:8124`, 'box'],
    ])
    await untilListening(first)
    const page = async (port: number) => (await fetch(`http://127.0.0.1:${port}/page`)).text()
    // Repeat the call, because the Python server in the sandbox does not listen immediately.
    let text = await page(first).catch(() => '')
    while (text === '') {
      await pause(100)
      text = await page(first).catch(() => '')
    }
    assert.equal(text, 'found\n')
    await assert.rejects(page(first + 1))
    await assert.rejects(page(first + 2))
    await end(child)
  })

  test('a server that is started over SSH runs on after the SSH session, and `ssh -D` can reach its port', async () => {
    const proxy = await freePorts(1)
    const script = `
cat > ~/server.py <<'END'
import http.server
class Answer(http.server.BaseHTTPRequestHandler):
    def log_message(self, *words): pass
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'served')
http.server.HTTPServer(('127.0.0.1', 8321), Answer).serve_forever()
END
nohup python3 ~/server.py </dev/null >/dev/null 2>&1 &
until (exec 3<>/dev/tcp/127.0.0.1/8321) 2>/dev/null; do sleep 0.1; done
echo listeningOn==8321==
`
    const child = begin('ssh', ['-F', config, '-T', '-D', String(proxy), 'box', 'bash'])
    child.stdin.write(script)
    await shownBy(child, 'listeningOn==8321==')
    const through = ['-s', '--max-time', '10', '--socks5-hostname', `127.0.0.1:${proxy}`]
    assert.equal((await run('curl', [...through, 'http://localhost:8321/'])).out, 'served')
    assert.notEqual((await run('curl', [...through, 'http://198.51.100.1/'])).code, 0)
    await end(child)
    const again = await ssh('curl -s http://127.0.0.1:8321/')
    assert.equal(again.out, 'served')
  })
})

suite('a sandbox that is stopped', () => {
  test('if a sandbox stops, its SSH sessions end, and a new session fails with “stopped” in its error', async () => {
    const child = begin('ssh', ['-F', config, '-N', 'box'])
    const closed = once(child, 'close')
    assert.equal((await ssh('true')).code, 0)
    await box.stop()
    await closed
    const { code, err } = await ssh('true')
    assert.deepEqual([code, err], [255, 'alcove: The sandbox is not started: it is stopped.\n'])
    await box.start()
    assert.equal((await ssh('echo back')).out, 'back\n')
  })
})
