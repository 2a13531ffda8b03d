// Tests sudo in real sandboxes. No process in a sandbox can gain privileges: the agent starts the commands of sudo (docs/adr/0033).
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { type Box, boxOf, createBox, until } from './box.ts'
import { type Platform, platform } from './harness.ts'

suite('sudo', () => {
  let alcove: Platform
  let box: Box
  before(async () => {
    alcove = await platform()
    box = await createBox(alcove)
  })
  after(async () => {
    await box?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  /** Waits until no process whose command line matches `pattern` runs. */
  const isGone = (pattern: string) =>
    until(`no process ${pattern}`, async () => (await box.try(`pgrep -f '${pattern}'`)).exitCode === 1)

  test('sudo needs no password, and gives the default user the rights of root in a sandbox, and no more', async () => {
    assert.equal(await box.run('whoami; sudo whoami; sudo -n whoami'), 'daytona\nroot\nroot')
    const limits = "grep -E '^(NoNewPrivs|Seccomp|Cap(Prm|Bnd))' /proc/self/status"
    const root = await createBox(alcove, { user: 'root' })
    try {
      assert.equal(await box.run(`sudo ${limits}`), await root.run(limits))
      assert.match(await box.run(`sudo ${limits}`), /NoNewPrivs:\t1\n/)
      assert.equal(await root.run('sudo whoami; sudo -u daytona whoami'), 'root\ndaytona')
    } finally {
      await root[Symbol.asyncDispose]()
    }
  })

  test('sudo exits with the exit code of its command, or dies of the signal that killed its command', async () => {
    const codes = {
      'sudo true': 0,
      'sudo sh -c "exit 7"': 7,
      'sudo nosuch': 1,
      'sudo /nosuch': 1,
      'sudo /etc/passwd': 1,
    }
    for (const [command, code] of Object.entries(codes)) assert.equal((await box.try(command)).exitCode, code, command)
    assert.match((await box.try('sudo nosuch 2>&1')).result, /^sudo: nosuch: command not found$/m)
    const script = `python3 -c "import subprocess; print(subprocess.run(['sudo', 'sh', '-c', 'kill -USR1 \\$\\$']).returncode)"`
    assert.equal(await box.run(script), '-10')
  })

  test('signals to sudo are passed on to its command, which may handle them', async () => {
    const command = `trap "echo got $0; exit 3" $0; echo ready; while :; do sleep 0.01; done`
    for (const name of ['TERM', 'INT', 'HUP', 'QUIT', 'USR1', 'USR2']) {
      // Python starts sudo, because a non-interactive shell would make a sudo in the background ignore INT and QUIT.
      const script = `
import signal, subprocess
p = subprocess.Popen(['sudo', 'sh', '-c', '${command.replaceAll('$0', name)}'], stdout=subprocess.PIPE, text=True)
assert p.stdout.readline() == 'ready\\n'
p.send_signal(signal.SIG${name})
print(p.stdout.read().strip(), p.wait())`
      assert.match(await box.run(`python3 -c '${script.replaceAll("'", `'\\''`)}'`), new RegExp(`got ${name} 3$`))
    }
  })

  test('if sudo in a sandbox is suspended, its command is suspended too; SIGCONT continues sudo and command', async () => {
    const script = `
import os, signal, subprocess, time
p = subprocess.Popen(['sudo', 'sh', '-c', 'echo $$; exec sleep 3601'], stdout=subprocess.PIPE, text=True, process_group=0)
pid = p.stdout.readline().strip()
def state(wanted):
    while open(f'/proc/{pid}/stat').read().split()[2] != wanted: time.sleep(0.01)
p.send_signal(signal.SIGTSTP)
assert os.WIFSTOPPED(os.waitpid(p.pid, os.WUNTRACED)[1])
state('T')
p.send_signal(signal.SIGCONT)
state('S')
p.send_signal(signal.SIGTERM)
print(p.wait())`
    assert.equal(await box.run(`python3 -c '${script.replaceAll("'", `'\\''`)}'`), '-15')
  })

  test('a command of sudo reads the caller’s stdin, and writes to the caller’s stdout and stderr, unchanged', async () => {
    await box.run('head -c 1048576 /dev/urandom >/tmp/random')
    await box.run('cat /tmp/random | sudo tee /root/random | cmp - /tmp/random && sudo cmp /root/random /tmp/random')
    assert.equal(await box.run('sudo sh -c "echo out; echo err >&2" 2>/dev/null'), 'out')
    assert.equal(await box.run('yes | sudo head -n 2'), 'y\ny')
    assert.equal(await box.run('sudo yes | head -n 1'), 'y')
    assert.equal(await box.run('sudo sh -c "echo closed" <&- 2>&-'), 'closed')
  })

  test('the command of sudo gets no socket of the agent, so it cannot send messages in the agent’s name', async () => {
    const others = `sh -c 'for fd in 3 4 5 6 7 8 9; do test ! -e /proc/$$/fd/$fd || echo $fd; done'`
    for (const user of ['root', 'nobody']) assert.equal(await box.run(`sudo -u ${user} ${others}`), '', user)
    // Tries to send sudo, in the agent's name, the message that signal 9 stopped the command. On such a message, sudo would kill
    // its own process group, with its caller.
    const stops = String.raw`python3 -c 'import socket; socket.socket(fileno=3).send(b"\x04\x09")'`
    assert.match(
      await box.run(`sudo -u nobody ${stops} 2>&1; echo the caller lives`),
      /Bad file descriptor[\s\S]*the caller lives$/,
    )
  })

  test('sudo runs its command in the caller’s directory, even if the caller may not enter this directory now', async () => {
    assert.equal(await box.run('mkdir -p /tmp/here && cd /tmp/here && sudo pwd'), '/tmp/here')
    assert.equal(await box.run('mkdir -p /tmp/shut && cd /tmp/shut && chmod 0 . && sudo pwd'), '/tmp/shut')
    assert.equal(await box.run('cd /tmp && sudo -D /etc pwd && sudo -i pwd'), '/etc\n/root')
    assert.match((await box.try('sudo -D /nosuch pwd 2>&1')).result, /unable to change directory to \/nosuch/)
  })

  test('the command of sudo gets a new environment, with only a few of the caller’s variables, such as LANG', async () => {
    const given =
      'LANG=C.UTF-8 LC_TIME=a/b OWN=1 HTTP_PROXY=http://proxy PATH=/tmp/own:$PATH LD_LIBRARY_PATH=/tmp TERM=dumb'
    const lines = (await box.run(`env ${given} sudo env`)).split('\n').sort()
    const path = lines.find((line) => line.startsWith('PATH=')) ?? ''
    const own = await box.run('echo $PATH')
    assert.ok(path.startsWith(`PATH=${own}`) && !path.includes('/tmp/own'), path)
    assert.deepEqual(
      lines.filter((line) => line !== path),
      [
        ...['HOME=/root', 'LANG=C.UTF-8', 'LOGNAME=root', 'MAIL=/var/mail/root', 'SHELL=/bin/bash'],
        ...[
          'SUDO_COMMAND=/usr/bin/env',
          'SUDO_GID=1000',
          'SUDO_UID=1000',
          'SUDO_USER=daytona',
          'TERM=dumb',
          'USER=root',
        ],
      ],
    )
  })

  test('sudo passes variables on by --preserve-env=, NAME=value and -E, but -E drops LD_* and PYTHONPATH', async () => {
    const print = `sh -c 'echo "$OWN $LD_PRELOAD $PYTHONPATH $HOME $USER"'`
    const given = 'OWN=own LD_PRELOAD= PYTHONPATH=/p'
    assert.equal(await box.run(`env ${given} sudo -E ${print}`), 'own   /home/daytona root')
    assert.equal(await box.run(`env ${given} sudo -EH ${print}`), 'own   /root root')
    assert.equal(await box.run(`env ${given} sudo --preserve-env=OWN,PYTHONPATH ${print}`), 'own  /p /root root')
    assert.equal(await box.run(`sudo OWN='a b' -n PYTHONPATH=/q ${print}`), 'a b  /q /root root')
  })

  test('sudo -u, -g, -i and -s choose the user, the group and a shell', async () => {
    assert.equal(
      await box.run('sudo -u nobody id -un; sudo -u "#65534" id -u; sudo --user=nobody id -un'),
      'nobody\n65534\nnobody',
    )
    assert.equal(await box.run('sudo -g tty id -gn; sudo -u root -g "#5" id -g'), 'tty\n5')
    assert.equal(await box.run(`sudo -i echo '$0' '$PWD' 'a  b;c'`), '-bash /root a  b;c')
    assert.equal(await box.run(`sudo -s echo '$0' 'a  b;c'`), 'bash a  b;c')
    assert.equal(await box.run(`echo 'id -un; pwd' | sudo -i`), 'root\n/root')
    for (const [wanted, said] of [
      ['-u nosuch', 'unknown user nosuch'],
      ['-u 4321', 'unknown user 4321'],
      ['-g nosuch', 'unknown group nosuch'],
    ]) {
      const { exitCode, result } = await box.try(`sudo ${wanted} id 2>&1`)
      assert.deepEqual([exitCode, result.trim()], [1, `sudo: ${said}`])
    }
  })

  test('sudo has options that run no command, such as -l and -v, and refuses unsupported options', async () => {
    assert.match(await box.run('sudo -l'), /^User daytona may run .*\n +\(ALL : ALL\) NOPASSWD: ALL$/)
    assert.equal(await box.run('sudo -v; sudo -nv; sudo -k; sudo -K; sudo -S -p "" -k whoami </dev/null'), 'root')
    assert.match(await box.run('sudo -h; sudo --version'), /^usage: sudo -h[\s\S]*Sudo version/)
    for (const line of [
      'sudo',
      'sudo -Z id',
      'sudo --nosuch id',
      'sudo -u',
      'sudo -u "" id',
      'sudo --user= id',
      'sudo -g "" id',
      'sudo -D "" id',
      'sudo A=b',
      'sudo -U root id',
      'sudo -e /etc/passwd',
      'sudo -R /tmp id',
    ]) {
      const { exitCode, result } = await box.try(`${line} 2>&1 >/dev/null`)
      assert.ok(exitCode === 1 && result !== '', `${line}: ${exitCode} ${result}`)
    }
  })

  test('a hundred sudo commands can run at the same time', async () => {
    const said = await box.run('for i in $(seq 100); do sudo sh -c "echo $i" & done; wait', { timeout: 60 })
    assert.equal(new Set(said.split('\n')).size, 100)
  })

  test('a command of sudo ends if the call times out or sudo is killed, even if the command ignores signals', async () => {
    const stubborn = (name: string) => `sudo sh -c 'trap "" HUP TERM; (setsid sleep ${name} &); sleep ${name}'`
    assert.equal((await box.toolbox('POST', '/process/execute', { command: stubborn('3611'), timeout: 1 })).status, 408)
    await isGone('sleep 361[1]')
    await box.run(`${stubborn('3612')} & while ! pgrep -cf 'sleep 361[2]' >/dev/null; do sleep 0.05; done; kill -9 $!`)
    await isGone('sleep 361[2]')
  })

  test('a daemon that a sudo command has started still runs after the sudo command has ended', async () => {
    await box.run(`sudo sh -c 'setsid sleep 3613 >/dev/null 2>&1 &'; sudo -b sleep 3614 >/dev/null 2>&1; sleep 0.2`)
    assert.match(await box.run('pgrep -f "sleep 361[3]"; pgrep -f "^sleep 361[4]"'), /^\d+\n\d+$/)
    await box.run('sudo pkill -f "sleep 361[34]"')
  })

  test('a new process that has the pid of an ended sudo cannot end that sudo’s background command', async () => {
    const client = Number(await box.run('sudo -b sleep 3616 >/dev/null 2>&1 & echo $!; wait'))
    const inside = ['--pid', '--target', String(await alcove.hostPid('sleep 3616')), 'sh', '-c']
    let below = 0
    await until('the shell of a session has that number', async () => {
      below = (below % 4) + 1
      execFileSync('nsenter', [...inside, `echo ${client - below} >/proc/sys/kernel/ns_last_pid`])
      await box.toolbox('POST', '/process/session', { sessionId: 'reused' })
      const { body } = await box.toolbox('POST', '/process/session/reused/exec', { command: 'echo $$' })
      // Delete the session, which kills everything that the session's shell has started. The background command must survive, even
      // if this shell has got the pid of the ended sudo.
      await box.toolbox('DELETE', '/process/session/reused')
      return Number(body['stdout'] ?? body['output']) === client
    })
    assert.equal((await box.try('pgrep -f "^sleep 361[6]"')).exitCode, 0)
    await box.run('sudo pkill -f "sleep 361[6]"')
  })

  test('if a session is deleted, sudo commands that run in the session end', async () => {
    await box.toolbox('POST', '/process/session', { sessionId: 'gone' })
    const command = `sudo sh -c 'trap "" TERM HUP; sleep 3615'`
    await box.toolbox('POST', '/process/session/gone/exec', { command, runAsync: true })
    await until('it runs', async () => (await box.try('pgrep -f "^sleep 361[5]"')).exitCode === 0)
    await box.toolbox('DELETE', '/process/session/gone')
    assert.equal((await box.try('pgrep -f "sleep 361[5]"')).exitCode, 1)
  })

  test('a session runs sudo like any other command', async () => {
    await box.toolbox('POST', '/process/session', { sessionId: 'one' })
    const { body } = await box.toolbox('POST', '/process/session/one/exec', {
      command: 'cd /tmp; sudo sh -c "id -un; pwd; exit 4"',
    })
    assert.deepEqual([body['exitCode'], String(body['stdout'] ?? body['output']).trim()], [4, 'root\n/tmp'])
    await box.toolbox('DELETE', '/process/session/one')
  })

  test('apt-get installs a .deb package whose script uses chown and chroot', async () => {
    const control =
      'Package: own\\nVersion: 1\\nArchitecture: all\\nMaintainer: a <a@example.com>\\nDescription: own\\n'
    await box.run(`mkdir -p /tmp/own/DEBIAN /tmp/own/usr/share/own && cd /tmp && printf '${control}' >own/DEBIAN/control &&
      printf '#!/bin/sh -e\nchown nobody:games /usr/share/own/file\nchroot / true\n' >own/DEBIAN/postinst &&
      chmod 755 own/DEBIAN/postinst && echo x >own/usr/share/own/file && dpkg-deb --root-owner-group -b own own.deb`)
    await box.run('sudo apt-get install -y /tmp/own.deb', { timeout: 120 })
    assert.equal(await box.run('stat -c %U:%G /usr/share/own/file'), 'nobody:games')
    await box.run('sudo apt-get remove -y own', { timeout: 120 })
  })

  test('Debian’s sudo package can be installed, and sudo still works', async () => {
    const control =
      'Package: sudo\\nVersion: 99\\nArchitecture: all\\nMaintainer: a <a@example.com>\\nDescription: as Debian has it\\n'
    const fresh = await createBox(alcove)
    try {
      await fresh.run(`mkdir -p /tmp/s/DEBIAN /tmp/s/usr/bin && cd /tmp && printf '${control}' >s/DEBIAN/control &&
        printf '#!/bin/sh\necho of Debian\n' >s/usr/bin/sudo && chmod 4755 s/usr/bin/sudo && dpkg-deb --root-owner-group -b s s.deb`)
      for (const _ of [1, 2]) await fresh.run('sudo dpkg -i /tmp/s.deb')
      assert.equal(await fresh.run('/usr/bin/sudo; sudo whoami; bash -lc "sudo whoami"'), 'of Debian\nroot\nroot')
      await fresh.run('sudo dpkg -r sudo')
      assert.equal(await fresh.run('sudo whoami'), 'root')
    } finally {
      await fresh[Symbol.asyncDispose]()
    }
  })

  test('sudo in a sandbox refuses users other than the default user with an error message', async () => {
    const { exitCode, result } = await box.try('sudo -u nobody sh -c "sudo id" 2>&1')
    assert.equal(exitCode, 1)
    assert.match(result, /^nobody is not allowed to run sudo on \S+\.$/m)
  })

  test('sudo leaves no file on the disk of a sandbox, and works in a fork of the sandbox', async () => {
    await box.run('sudo touch /usr/bin/witness')
    const onDisk = (name: string) => {
      const wanted = [join(alcove.data, 'runner'), '-path', `*${box.id}*`, '-name', name]
      return execFileSync('find', wanted, { encoding: 'utf8' })
    }
    assert.match(onDisk('witness'), /usr\/bin\/witness\n$/)
    assert.equal(onDisk('sudo'), '')
    const fork = await alcove.api('POST', `/sandbox/${box.id}/fork`, {})
    assert.equal(fork.status, 200, JSON.stringify(fork.body))
    const forked = boxOf(alcove, fork.body)
    try {
      await until('it runs', async () => (await alcove.api('GET', `/sandbox/${forked.id}`)).body['state'] === 'started')
      assert.equal(await forked.run('sudo whoami'), 'root')
    } finally {
      await forked[Symbol.asyncDispose]()
    }
  })
})

suite('programs that use the agent’s sudo socket directly', () => {
  let alcove: Platform
  let box: Box
  before(async () => {
    alcove = await platform()
    box = await createBox(alcove)
  })
  after(async () => {
    await box?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  const python = (script: string, as = '') => box.run(`${as} python3 - <<'END'\n${script}\nEND`, { timeout: 120 })
  const words = String.raw`
import array, os, random, resource, socket, struct, sys, time
def knock():
    s = socket.socket(socket.AF_UNIX)
    s.connect('/dev/.alcove/sudo')
    s.settimeout(30)
    return s
def text(t): return struct.pack('<I', len(t)) + t + b'\0'
def texts(*all): return struct.pack('<I', len(all)) + b''.join(map(text, all))
def request(argv, flags=0): return struct.pack('<BHQ', flags, 0o22, 0) + text(b'') * 3 + texts() + texts() + texts(*argv) + texts()
def send(s, which, body, fds, size=None):
    header = struct.pack('<BI', which, len(body) if size is None else size)
    try:
        s.sendmsg([header], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else [])
        s.sendall(body)
    except OSError: pass # who is refused may be told so before
def answer(s):
    try: return s.recv(2)
    except (ConnectionResetError, socket.timeout) as e: return type(e).__name__.encode()
`

  test('the agent refuses malformed or incomplete requests for sudo, and sudo works afterwards', async () => {
    const said = await python(`${words}
good = request([b'/bin/true'])
null = os.open('/dev/null', os.O_RDWR)
results = set()
for which, body, fds, size in [
    (0, good, [], None), (0, good, [null], None), (0, good, [null] * 4, None), (3, good, [null] * 5, None), (3, good, [null] * 3, None),
    (0, good, [null] * 20, None), (255, good, [null] * 3, None), (0, good + b'x', [null] * 3, None), (0, good[:-1], [null] * 3, None),
    (0, b'', [null] * 3, 0), (0, good, [null] * 3, 0xffffffff), (0, struct.pack('<BHQ', 255, 0, 0) + good[11:], [null] * 3, None),
    (0, good[:11] + b'\\xff' * 60, [null] * 3, None), (1, good, [null] * 4, None)]:
    s = knock(); send(s, which, body, fds, size); results.add(answer(s)); s.close()
random.seed(7)
for _ in range(300):
    s = knock(); s.send(random.randbytes(random.randrange(1, 60))); s.close()
    s = knock(); send(s, 0, random.randbytes(random.randrange(40)), [null] * 3); results.add(answer(s)); s.close()
    changed = bytearray(good); changed[random.randrange(11, len(good))] ^= 1 << random.randrange(8)
    s = knock(); send(s, 0, bytes(changed), [null] * 3); s.close()
print(sorted(results))
s = knock(); send(s, 0, good, [null] * 3); print(s.recv(2), s.recv(2))`)
    // The first line has every different answer to the bad requests: code 7 is a refusal. Code 3 (`SUDO_STARTED`) answers a request
    // whose only fault is an unusable working directory; the agent starts its command in `/`. The second line has the answers to a
    // correct request.
    assert.equal(said, "[b'\\x03\\x00', b'\\x07\\x03']\nb'\\x03\\x00' b'\\x05\\x00'")
    assert.equal(await box.run('sudo whoami'), 'root')
  })

  test('sudo works while another process opens thousands of connections to the agent’s sudo socket', async () => {
    const said = await python(`${words}
for _ in range(10000): knock().close()
print('knocked')`)
    assert.equal(said, 'knocked')
    const held = box.run(
      `python3 - <<'END'\n${words}
held = []
try:
    while len(held) < 3000:
        s = socket.socket(socket.AF_UNIX); s.setblocking(False); s.connect('/dev/.alcove/sudo'); held.append(s)
except BlockingIOError: pass
open('/tmp/held', 'w').write(str(len(held)))
time.sleep(3)
END`,
      { timeout: 60 },
    )
    await until('they are held', async () => (await box.try('test -s /tmp/held')).exitCode === 0)
    assert.equal(await box.run('echo here'), 'here')
    await held
    assert.equal(await box.run('sudo whoami', { timeout: 60 }), 'root')
  })

  test('even a busy agent refuses users who may not use sudo, before it reads the users’ requests', async () => {
    const said = await python(
      `${words}
s = knock(); print(answer(s))
s = knock(); send(s, 0, request([b'/bin/true']), [0, 1, 2]); print(answer(s))`,
      'sudo -u nobody',
    )
    assert.equal(said, "b'\\x07\\x01'\nb'\\x07\\x01'")
  })

  test('a sudo command ends if the sudo client sends an incomplete or invalid message, or disconnects', async () => {
    for (const rest of [
      "s.send(b'\\x02')",
      "s.send(b'\\xff\\xff')",
      's.shutdown(socket.SHUT_WR)',
      "s.send(b'\\x01\\x00')",
    ]) {
      const said = await python(`${words}
null = os.open('/dev/null', os.O_RDWR)
s = knock(); send(s, 0, request([b'/bin/sleep', b'3631']), [null] * 3); print(answer(s))
${rest}
while s.recv(10): pass`)
      assert.equal(said, "b'\\x03\\x00'")
      assert.equal((await box.try('pgrep -f "sleep 363[1]"')).exitCode, 1)
    }
  })

  test('during a sudo command, the caller’s terminal stays the controlling terminal of the caller’s session', async () => {
    const said = await python(`${words}
import pty
pid, master = pty.fork()
if pid == 0:
    s = knock(); send(s, 2, request([b'/bin/true']), [0, 1, 2, 0]); print(answer(s), flush=True)
    os._exit(0)
out = b''
try:
    while True: out += os.read(master, 1000)
except OSError: pass
print(out.decode().strip())`)
    assert.equal(said, "b'\\x07\\x03'")
  })
})
