// Tests, inside real sandboxes, what a sandbox must not be able to do. Skipped without root.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { constants, totalmem } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { parseCounters } from './cgroup/files.ts'
import { readLayout } from './cgroup/layout.ts'
import { reserveBytes } from './cgroup/reserve.ts'
import { pidsLimit } from './cgroup/sandbox-limits.ts'
import { terminals } from './oci/config.ts'
import { uidBase, uidCount } from './oci/ids.ts'
import { numbers } from './oci/seccomp/arguments.ts'
import { refusals } from './oci/seccomp/refused-calls.ts'
import { systemCalls32 } from './oci/seccomp/syscalls-32.ts'
import { forbiddenCalls } from './oci/seccomp/testing/forbidden-calls.ts'
import { cannotMapOwners, TestHost } from './testing/test-host.ts'

const { EPERM, ENOSYS, EAFNOSUPPORT, EPROTONOSUPPORT, EINVAL, ENOMEM, ENOPROTOOPT, ENOSPC } = constants.errno
const ESOCKTNOSUPPORT = 94

suite('the isolation of a sandbox', { skip: needsRoot }, () => {
  let box: TestHost
  let id: string
  before(async () => {
    box = await TestHost.start()
    id = (await box.started()).sandboxId
  })
  after(async () => {
    await box[Symbol.asyncDispose]()
  })

  const statusOf = (line: string) =>
    box.run(id, `cat /proc/self/status`).then(({ output }) => {
      const value = output.split('\n').find((entry) => entry.startsWith(`${line}:`))
      return value?.slice(line.length + 1).trim()
    })

  test('uid 0 in a sandbox is an unprivileged uid on the host, for its files and its processes', async () => {
    await box.run(id, 'echo x > /root/file; sleep 1000 > /dev/null 2>&1 &')
    assert.equal((await box.run(id, 'id -u')).output, '0')
    const upper = join(box.directory, 'runner/pool/disks', id, 'upper')
    assert.equal(statSync(join(upper, 'root/file')).uid, uidBase)
    const owners = (await box.cgroupOf(id).pids()).map((pid) => statSync(`/proc/${pid}`).uid)
    assert.ok(owners.length >= 2)
    for (const owner of owners) assert.ok(owner >= uidBase, `${owner}`)
  })

  test('on the host, the processes of each sandbox have a range of user ids of their own', async (t) => {
    if (!(await box.mapsOwners())) return t.skip(cannotMapOwners)
    const { sandboxId } = await box.started()
    const rangeOf = (pid: number) => Math.floor((statSync(`/proc/${pid}`).uid - uidBase) / uidCount)
    const ranges = [id, sandboxId].map((each) => rangeOf(box.pidOf(each)))
    assert.equal(new Set([0, ...ranges]).size, 3, `of ${ranges}, and none has the one that disks are of`)
    assert.equal((await box.run(sandboxId, 'cat /proc/self/uid_map')).output.split(/\s+/)[2], String(uidCount))
    await box.host.destroy(sandboxId)
  })

  test('each sandbox has its own limit of file descriptors that were sent over sockets and not yet received', async (t) => {
    if (!(await box.mapsOwners())) return t.skip(cannotMapOwners)
    const { sandboxId } = await box.started()
    const held = await box.run(
      id,
      'probe in-flight > /tmp/held 2>&1 & while [ ! -s /tmp/held ]; do sleep 0.1; done; cat /tmp/held',
    )
    assert.match(held.output, /^all that it may have: [1-9]/)
    assert.equal((await box.run(sandboxId, 'probe in-flight-one')).output, 'in-flight-one 0')
    await box.host.destroy(sandboxId)
  })

  test('processes in a sandbox are under the system call filter, and cannot gain privileges', async () => {
    assert.equal(await statusOf('Seccomp'), '2')
    assert.equal(await statusOf('NoNewPrivs'), '1')
    assert.equal(await statusOf('CapBnd'), '00000000800405fb')
  })

  test('PID 1 of a sandbox is under the system call filter', () => {
    assert.match(readFileSync(`/proc/${box.pidOf(id)}/status`, 'utf8'), /^Seccomp:\s+2$/m)
  })

  test('the system call filter refuses calls that reach outside the sandbox; ordinary system calls work', async () => {
    const { output } = await box.run(id, 'probe')
    assert.deepEqual(
      Object.fromEntries(parseCounters(output)),
      {
        mount: EPERM,
        fsopen: EPERM,
        setns: EPERM,
        'unshare-user': EPERM,
        'unshare-net': EPERM,
        'unshare-files': 0,
        'clone-user': EPERM,
        'clone-plain': 0,
        clone3: ENOSYS,
        bpf: EPERM,
        keyctl: EPERM,
        io_uring_setup: ENOSYS,
        userfaultfd: EPERM,
        perf_event_open: EPERM,
        'socket-unix': 0,
        'socket-inet': 0,
        'socket-vsock': EAFNOSUPPORT,
        'netlink-routes': 0,
        'netlink-sockets': 0,
        'netlink-unused': EPROTONOSUPPORT,
        'netlink-audit': EPROTONOSUPPORT,
        'netlink-devices': EPROTONOSUPPORT,
        'netlink-filters': EPROTONOSUPPORT,
        'socket-alg': EAFNOSUPPORT,
        'personality-query': 0,
        'personality-odd': ENOSYS,
        'unknown-call': ENOSYS,
        'pair-unix': 0,
        'pair-vsock': EAFNOSUPPORT,
        'pair-vsock-upper-half': EAFNOSUPPORT,
        'socket-mptcp': EPROTONOSUPPORT,
        'socket-udplite': EPROTONOSUPPORT,
        'socket-seqpacket': ESOCKTNOSUPPORT,
        'socket-raw': EPERM,
        'socket-ping': 0,
        'option-plain': 0,
        'option-filter': ENOPROTOOPT,
        'option-filter-upper-half': ENOPROTOOPT,
        'option-timestamping': ENOPROTOOPT,
        'option-errors': 0,
        'errors-kept': 0,
        'timestamp-kept': 0,
        'huge-mmap': ENOMEM,
        'huge-memfd': EINVAL,
        'huge-shm': ENOMEM,
        'init-limits': EPERM,
        'init-priority': EPERM,
        'init-group-priority': EPERM,
        'init-scheduler': EPERM,
        'init-affinity': EPERM,
        'init-input-and-output': EPERM,
        'init-user-priority': EPERM,
        'init-user-input-and-output': EPERM,
        'own-limits': 0,
        'own-priority': 0,
        'filter-with-listener': EINVAL,
        'filter-plain': 0,
        'attribute-most': 0,
        'attribute-more': ENOSPC,
        'attribute-newer-call': ENOSYS,
        'poll-most': 0,
        'poll-more': EINVAL,
        'select-most': 0,
        'select-more': EINVAL,
        'tcp-key': ENOPROTOOPT,
        'tcp-upper': ENOPROTOOPT,
        'tcp-plain': 0,
        aio: ENOSYS,
        segments: ENOSYS,
      },
      `EINVAL would mean that the kernel was reached: ${EINVAL}`,
    )
  })

  test('the system call filter refuses each forbidden pair of call and argument, with the expected error', async () => {
    const arch = process.arch as 'x64' | 'arm64'
    const tried = forbiddenCalls.flatMap(({ name, call, given, errno }) => {
      const number = numbers[call]?.[arch]
      return number === undefined ? [] : [{ name, errno, line: [number, ...given].join(',') }]
    })
    const { output } = await box.run(id, `probe calls ${tried.map(({ line }) => line).join(' ')}`)
    const answers = Object.fromEntries(output.split('\n').map((line) => line.split(' ')))
    assert.deepEqual(
      tried.map(({ name, line }) => [name, Number(answers[line])]),
      tried.map(({ name, errno }) => [name, errno]),
    )
  })

  suite('32-bit programs in a sandbox', {
    skip: process.arch !== 'x64' && 'no such programs on this processor',
  }, () => {
    test('32-bit programs run in a sandbox, and can make sockets by socket(2) but not by socketcall(2)', async () => {
      const { output } = await box.run(id, 'probe-32')
      assert.deepEqual(Object.fromEntries(parseCounters(output.replace(/ (?=\S+ )/g, '-'))), {
        open: 0,
        read: 0,
        memory: 0,
        'thread-area': 0,
        user: 0,
        clock: 0,
        child: 0,
        'its-exit-code': 0,
        socket: 0,
        'socket-by-socketcall': ENOSYS,
      })
    })

    test('32-bit system calls are refused like 64-bit system calls, even if a 64-bit program makes them', async () => {
      const numberOf = (call: string) =>
        systemCalls32.get({ mmap: 'mmap2', select: '_newselect' }[call] ?? call) as number
      const tried = [
        ...forbiddenCalls.map(({ name, call, given, errno }) => ({
          name,
          errno,
          line: [numberOf(call), ...given].join(','),
        })),
        ...refusals.flatMap(({ calls, answer }) =>
          calls
            .filter((call) => systemCalls32.has(call))
            .map((name) => ({ name, errno: answer === 'EPERM' ? EPERM : ENOSYS, line: `${systemCalls32.get(name)}` })),
        ),
        ...[1, 8, 14].map((call) => ({ name: `socketcall ${call}`, errno: ENOSYS, line: `102,${call}` })),
        { name: 'huge pages by ipc', errno: ENOMEM, line: '117,23,0,4096,2944' },
        { name: 'the old mmap', errno: ENOSYS, line: '90,0' },
        { name: 'umount', errno: EPERM, line: '22,0' },
        { name: 'a user namespace', errno: EPERM, line: `120,${0x10000000 + 17}` },
        { name: 'kernel cryptography', errno: EAFNOSUPPORT, line: '359,38,5,0' },
      ]
      const { output } = await box.run(id, `probe calls-32 ${tried.map(({ line }) => line).join(' ')}`)
      const answers = Object.fromEntries(output.split('\n').map((line) => line.split(' ')))
      assert.deepEqual(
        tried.map(({ name, line }) => [name, Number(answers[line])]),
        tried.map(({ name, errno }) => [name, errno]),
      )
    })

    test('the system call filter refuses x32 system calls', async () => {
      assert.equal((await box.run(id, 'probe x32')).output, 'x32 refused')
    })
  })

  test('unread ping replies of a sandbox take less than 32 MiB of host memory, and its ping still works', async () => {
    const { held, small } = Object.fromEntries(parseCounters((await box.run(id, 'probe echoes', 'daytona')).output))
    assert.ok(held !== undefined && held > 0 && held < 32, `${held} MiB`)
    assert.equal(small, 1)
  })

  test('a sandbox cannot see the host’s devices and kernel settings', async () => {
    // This machine may lack some of these directories. A sandbox then cannot see these directories either, so the test passes.
    const hidden = ['class/dmi', 'devices/virtual/dmi', 'firmware', 'class/net', 'class/block', 'block', 'fs/btrfs']
    hidden.push('devices/virtual/net', 'devices/virtual/block')
    const look = `ls -d ${hidden.map((path) => `/sys/${path}/*`).join(' ')} 2>/dev/null`
    assert.equal((await box.run(id, look)).output, '')
    assert.equal((await box.run(id, 'cat /proc/cmdline /proc/keys /proc/interrupts')).output, '')
    const usual = 'console core fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero'.split(' ')
    const devices = (await box.run(id, 'ls /dev')).output.split('\n')
    assert.deepEqual(
      devices.filter((device) => !usual.includes(device)),
      [],
    )
  })

  test('a sandbox cannot read the use of the host’s disks and network cards', async () => {
    const files = ['diskstats', 'partitions', 'zoneinfo', 'softirqs', 'buddyinfo']
    assert.equal((await box.run(id, `cat ${files.map((name) => `/proc/${name}`).join(' ')}`)).output, '')
    // The entries of these two directories are links to the directories of the host's disks and network cards.
    const devices = execFileSync('sh', ['-c', 'readlink -f /sys/block/* /sys/class/net/*'], { encoding: 'utf8' })
    const directories = ['/proc/fs', '/proc/pressure', '/sys/class/bdi', '/sys/devices/virtual/bdi', '/sys/fs/ext4']
    const paths = [...directories.map((path) => `${path}/*`), ...devices.trim().split('\n')]
    assert.equal((await box.run(id, `ls -d ${paths.join(' ')} 2>/dev/null`)).output, '')
  })

  test('a sandbox cannot change the mode of the host’s /dev/null; the number of its terminals is limited', async () => {
    const { uid, mode } = statSync('/dev/null')
    assert.ok(uid < uidBase, `it is of ${uid}`)
    assert.equal(mode & 0o777, 0o666)
    const { output } = await box.run(id, 'chmod 0 /dev/null || echo refused; echo x > /dev/null && echo written')
    assert.deepEqual(output.split('\n').slice(-2), ['refused', 'written'])
    assert.match((await box.run(id, 'cat /proc/mounts')).output, /devpts .*max=256/)
  })

  test('a sandbox cannot write kernel settings', async () => {
    for (const path of ['/proc/sys/kernel/hostname', '/proc/sysrq-trigger', '/sys/kernel/uevent_helper'])
      assert.notEqual((await box.run(id, `echo x > ${path}`)).exitCode, 0, path)
  })

  test('a command in a sandbox has only the file descriptors 0, 1 and 2', async () => {
    // Descriptor 3 belongs to `ls`, which has opened the directory that it lists.
    assert.equal((await box.run(id, 'ls /proc/self/fd')).output, '0\n1\n2\n3')
  })

  test('root in a sandbox cannot write to any file of PID 1 in /proc, by whatever path', async () => {
    const files = 'oom_score_adj oom_adj autogroup comm coredump_filter clear_refs timerslack_ns sched mem loginuid'
    const ways = ['/proc/1', '/proc/1/task/1', '/proc/self/root/proc/1', '/proc/self/cwd/proc/1']
    for (const way of ways) {
      const attempt = `for name in ${files}; do (echo 0 > ${way}/$name) 2>/dev/null && echo ${way}/$name; done; true`
      assert.equal((await box.run(id, `cd /; ${attempt}`)).output, '')
    }
    assert.equal(
      (await box.run(id, 'echo 500 > /proc/self/oom_score_adj && cat /proc/self/oom_score_adj')).output,
      '500',
    )
    assert.notEqual((await box.run(id, 'echo -1 > /proc/self/oom_score_adj')).exitCode, 0)
    const score = (pid: number) => Number(readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8'))
    await box.run(id, 'sleep 4717 > /dev/null 2>&1 &')
    const others = (await box.cgroupOf(id).pids()).filter((pid) => pid !== box.pidOf(id)).map(score)
    assert.ok(score(box.pidOf(id)) > score(process.pid), 'the host’s own programs come last')
    assert.ok(Math.min(...others) > score(box.pidOf(id)), `PID 1 has ${score(box.pidOf(id))}, others ${others}`)
  })

  test('a sandbox cannot change the agent’s program file, and has no directory `/.alcove`', async () => {
    const agent = '/dev/.alcove/agent'
    assert.notEqual((await box.run(id, `echo x > ${agent}`)).exitCode, 0)
    assert.equal((await box.run(id, 'ls -A /.alcove')).exitCode, 2)
  })

  test('one sandbox cannot use up kernel limits, such as of terminals, that all sandboxes of a host share', () => {
    const shared = (path: string) => Number(readFileSync(`/proc/sys/${path}`, 'utf8'))
    for (const path of ['fs/inotify/max_user_instances', 'fs/file-max', 'kernel/pid_max', 'kernel/threads-max'])
      assert.ok(shared(path) > pidsLimit({ memoryGiB: 1 }) * 128, `${path} is ${shared(path)}`)
    assert.ok(shared('kernel/pty/max') > terminals * 1000)
    assert.ok(shared('fs/epoll/max_user_watches') >= 1e9)
    // This limit is a number of pages of 4 KiB. 0: no limit.
    assert.ok(shared('fs/pipe-user-pages-soft') >= 2 ** 24 || shared('fs/pipe-user-pages-soft') === 0)
  })

  test('the memory limit of all sandboxes together leaves a reserve for the host and Alcove', () => {
    const layout = readLayout()
    const file = layout.version === 2 ? 'memory.max' : 'memory.limit_in_bytes'
    const root = layout.version === 2 ? layout.root : layout.roots.memory
    const all = Number(readFileSync(join(root, `alcove-${box.instance}`, file), 'utf8'))
    assert.ok(all > 0 && Math.abs(totalmem() - reserveBytes() - all) <= 65_536, `${all}`)
    assert.deepEqual([reserveBytes(4 * 2 ** 30), reserveBytes(64 * 2 ** 30)], [429_496_729, 2 ** 31])
  })

  test('a process that uses up a sandbox’s memory is killed; the sandbox and the host keep running', async () => {
    const bomb = await box.run(id, 'tail /dev/zero')
    assert.equal(bomb.exitCode, 137)
    assert.equal((await box.run(id, 'echo alive')).output, 'alive')
    assert.ok((await box.cgroupOf(id).outOfMemoryKills()) > 0)
  })

  test('a fork bomb cannot exceed a sandbox’s limit of processes; a stop ends all processes of the sandbox', async () => {
    const assignment = await box.started({ signal: 'SIGKILL', memoryGiB: 1 })
    const { sandboxId } = assignment
    const bomb = box.run(sandboxId, 'f() { f | f & f; }; f').catch(() => {})
    const cgroup = box.cgroupOf(sandboxId)
    let most = 0
    const limit = pidsLimit(assignment)
    while (most < limit / 2) most = Math.max(most, (await cgroup.usage())?.processes ?? 0)
    assert.ok(most <= limit, `${most}`)
    await box.host.stop(assignment)
    await bomb
    assert.deepEqual(await cgroup.pids(), [])
  })

  test('a full disk causes errors only in its own sandbox; other sandboxes can still write', async () => {
    const assignment = await box.started()
    const full = assignment.sandboxId
    const wrote = await box.run(full, 'dd if=/dev/zero of=/home/daytona/big bs=1M count=1500')
    assert.notEqual(wrote.exitCode, 0)
    assert.match(wrote.output, /quota exceeded|No space left/)
    const beside = await box.run(id, 'dd if=/dev/zero of=/home/daytona/big bs=1M count=100')
    assert.equal(beside.exitCode, 0, beside.output)
    // A sandbox with a full disk can be stopped and started again, and has space again after files were removed.
    await box.host.stop(assignment)
    await box.host.start(assignment)
    const room = await box.run(full, 'rm /home/daytona/big && echo x > /home/daytona/small')
    assert.equal(room.exitCode, 0, room.output)
    await box.host.destroy(full)
  })
})
