import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { type Confined, confined } from './confined.ts'
import { identityOf, waitUntilGone } from './process-identity.ts'

const needsRoot = process.getuid?.() === 0 ? false : 'giving root away needs root'
const uid = 61099

suite('a program that is started without privileges (confined)', { skip: needsRoot }, () => {
  const scratch = mkdtempSync(join(tmpdir(), 'alcove-confine-'))
  chmodSync(scratch, 0o711)
  after(() => rmSync(scratch, { recursive: true, force: true }))

  const closed = join(scratch, 'closed', 'code')
  mkdirSync(closed, { recursive: true })
  chmodSync(join(scratch, 'closed'), 0o700)
  writeFileSync(join(closed, 'hello'), 'hello')
  const secret = join(scratch, 'secret')
  writeFileSync(secret, 'secret', { mode: 0o644 })

  const runAs = (program: Omit<Confined, 'command' | 'uid'>, command: readonly string[]) => {
    const [file = '', ...args] = confined({ uid, ...program, command })
    const { stdout, stderr } = spawnSync(file, args, { encoding: 'utf8', env: { PATH: '/usr/bin:/bin' } })
    return `${stdout}${stderr}`.trim()
  }
  const family = { sockets: 'internet', hasProcesses: true, shown: [{ from: closed }] } as const
  const run = (script: string) => runAs(family, ['sh', '-c', script])
  /** Runs a confined Python program. Its code makes a system call, and prints 0 or the errno with which the call failed. */
  const python = (program: Omit<Confined, 'command' | 'uid'>, lines: string) =>
    runAs(program, ['/usr/bin/python3', '-c', lines])

  test('a confined program has its own uid and gid, no groups, no capabilities, and a system call filter', () => {
    assert.equal(run('id -u; id -g; id -G'), `${uid}\n${uid}\n${uid}`)
    const status = run('grep -E "^(Cap|NoNewPrivs|Seccomp:)" /proc/$$/status')
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
      assert.match(status, new RegExp(`^${set}:\t0+$`, 'm'))
    assert.match(status, /^NoNewPrivs:\t1$/m)
    assert.match(status, /^Seccomp:\t2$/m)
  })

  test('a confined program with mayBindLowPorts keeps only the capability to listen below port 1024', () => {
    const status = runAs({ ...family, mayBindLowPorts: true }, ['sh', '-c', 'grep ^Cap /proc/$$/status'])
    for (const set of ['CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
      assert.match(status, new RegExp(`^${set}:\t0+400$`, 'm'))
  })

  test('a confined program can read a directory in `shown` whose parent it cannot open, but not write there', () => {
    assert.equal(run(`cat ${closed}/hello`), 'hello')
    assert.match(run(`touch ${closed}/new`), /Read-only file system/)
  })

  test('a confined program can write to its own directory if `isWritable` is set in the option `shown`', () => {
    const own = join(scratch, 'own')
    mkdirSync(own)
    chownSync(own, uid, uid)
    runAs({ ...family, shown: [{ from: own, isWritable: true }] }, ['sh', '-c', `echo new >${own}/new`])
    assert.equal(readFileSync(join(own, 'new'), 'utf8'), 'new\n')
  })

  test('besides `shown` and system files, a confined program sees no files, sockets or processes of the host', () => {
    assert.match(run(`cat ${secret}`), /No such file/)
    assert.match(run(`cat ${process.cwd()}/package.json`), /No such file/)
    const top = run('ls /').split('\n')
    const known = ['bin', 'dev', 'etc', 'lib', 'lib32', 'lib64', 'libx32', 'proc', 'run', 'sbin', 'tmp', 'usr']
    assert.deepEqual(
      top.filter((name) => !known.includes(name)),
      [],
    )
    assert.match(
      run('ls /root /home /var /sys /run/alcove 2>&1'),
      /^(ls: cannot access '[^']+': No such file or directory\n?)+$/,
    )
    assert.match(run('ls /proc | grep -cE "^[0-9]+$"'), /^1$/)
    assert.equal(run('mountpoint -q / && grep -c . /proc/mounts 2>/dev/null || true').includes('pool'), false)
  })

  test('a confined program sees a directory in `hidden` as empty, even if the parent directory is shown', () => {
    const shown = [{ from: closed }]
    const hides = { sockets: 'none', hasProcesses: true, hidden: ['/usr/share'], shown } as const
    assert.equal(runAs(hides, ['sh', '-c', 'ls -A /usr/share; ls /usr | grep -c share']), '1')
  })

  const dangerous = `
import ctypes, errno, platform
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == 'x86_64'
calls = dict(mount=(165, 40), unshare=(272, 97), setns=(308, 268), ptrace=(101, 117), bpf=(321, 280), keyctl=(250, 219),
  add_key=(248, 217), perf_event_open=(298, 241), userfaultfd=(323, 282), io_uring_setup=(425, 425), kexec_load=(246, 104),
  init_module=(175, 105), finit_module=(313, 273), process_vm_readv=(310, 270), open_by_handle_at=(304, 265), pivot_root=(155, 41),
  chroot=(161, 51), fsopen=(430, 430), open_tree=(428, 428), mount_setattr=(442, 442), pidfd_getfd=(438, 438))
for name, (amd, arm) in calls.items():
  result = libc.syscall(amd if x86 else arm, 0, 0, 0, 0, 0, 0)
  if result != -1 or ctypes.get_errno() != errno.EPERM: print(name, result, ctypes.get_errno())
clone = libc.syscall(56 if x86 else 220, 0x10000000 | 17, 0, 0, 0, 0)
if clone == 0: libc._exit(0)
if clone != -1 or ctypes.get_errno() != errno.EPERM: print('clone into a user namespace', clone)
libc.syscall(435, 0, 0)
if ctypes.get_errno() != errno.ENOSYS: print('clone3', ctypes.get_errno())
print('done')`

  test('system calls for privilege escalation fail with EPERM in a confined program, clone3 with ENOSYS', () => {
    assert.equal(python(family, dangerous), 'done')
  })

  const socketErrors = `
import socket, errno
def tries(*kind):
  try: socket.socket(*kind).close(); return 'made'
  except OSError as error: return errno.errorcode[error.errno]
print(tries(socket.AF_UNIX), tries(socket.AF_INET), tries(socket.AF_INET6), tries(socket.AF_PACKET, socket.SOCK_RAW), tries(socket.AF_VSOCK), tries(38, 5))`

  test('a confined program can open only the kinds of sockets that `sockets` allows', () => {
    const [no, other] = ['EPERM', 'EAFNOSUPPORT']
    const made = (sockets: Confined['sockets']) => python({ sockets }, socketErrors).split(' ')
    assert.deepEqual(made('internet'), ['made', 'made', 'made', other, other, other])
    assert.deepEqual(made('unix'), ['made', other, other, other, other, other])
    assert.deepEqual(made('none'), [no, no, no, no, no, no])
  })

  test('without hasProcesses, a confined program can neither start processes nor send signals; threads work', () => {
    const alone = `
import os, threading, signal, errno
thread = threading.Thread(target=lambda: print('thread')); thread.start(); thread.join()
def tries(what):
  try: what(); return 'done'
  except OSError as error: return errno.errorcode[error.errno]
print(tries(os.fork), tries(lambda: os.kill(${process.pid}, 0)), tries(lambda: os.kill(-1, 9)), tries(lambda: os.kill(os.getpid(), 0)))`
    assert.equal(python({ sockets: 'none' }, alone), 'thread\nEPERM EPERM EPERM done')
  })

  test('a confined program has a memory limit, and inherits no file descriptor of the process that starts it', () => {
    const memory = { sockets: 'none', limits: { memory: 256 * 1024 ** 2 } } as const
    assert.match(python(memory, 'bytearray(512 * 1024 ** 2)'), /MemoryError/)
    assert.equal(
      python(
        { sockets: 'none' },
        'import os; print([n for n in range(3, 64) if os.path.exists(f"/proc/self/fd/{n}")])',
      ),
      '[]',
    )
  })

  test('a confined program leaves no mount on the host', () => {
    // Other tests mount file systems on the host meanwhile. So the program runs in a copy of the host's mounts. The copy is shared,
    // as the host's mounts may be, but not with the host.
    const script = `mount --make-rshared /; cat /proc/self/mountinfo; echo; "$@"; echo; cat /proc/self/mountinfo`
    const program = confined({ uid, ...family, command: ['echo', 'it ran'] })
    const { stdout, stderr } = spawnSync(
      'unshare',
      ['--mount', '--propagation', 'private', 'sh', '-c', script, 'sh', ...program],
      { encoding: 'utf8' },
    )
    const [before, said, after] = stdout.split('\n\n')
    assert.deepEqual([said, after?.trim()], ['it ran', before?.trim()], stderr)
    assert.ok(before?.includes(' / '))
  })

  test('a confined program ends when the process that started it is killed', async () => {
    const [file = '', ...args] = confined({ command: ['sleep', '600'], uid, sockets: 'none' })
    const script = `
      const { spawn } = require('node:child_process')
      const child = spawn(${JSON.stringify(file)}, ${JSON.stringify(args)}, { stdio: 'ignore', detached: true })
      const { readFileSync } = require('node:fs')
      const tell = () => readFileSync('/proc/' + child.pid + '/comm', 'utf8') === 'sleep\\n' ? console.log(child.pid) : setTimeout(tell, 5)
      tell()`
    const parent = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [said] = (await once(parent.stdout, 'data')) as [Buffer]
    const sleeper = identityOf(Number(said.toString()))
    parent.kill('SIGKILL')
    assert.equal(await waitUntilGone(sleeper, 20_000), true)
  })
})
