// Hostile code in a sandbox must see nothing of the host and of other sandboxes, and must not exceed the sandbox's limits. Beside
// each expected refusal, a similar attempt must succeed. Otherwise a mistake in the test could pass for a refusal.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { after, before, suite, test } from 'node:test'
import { readLayout } from '#src/runner/cgroup/layout.ts'
import { type Box, createBox, until } from './box.ts'
import { type Platform, platform } from './harness.ts'

/**
 * The reason to skip the test of socket buffers, or false. With cgroup v2, socket buffers count as memory of the sandbox, which
 * another test checks.
 */
const countsBuffers = readLayout().version === 2 && 'cgroup v2 counts buffers as memory'

suite('isolation of a sandbox', () => {
  let alcove: Platform
  let box: Box
  let root: Box

  before(async () => {
    alcove = await platform()
    box = await createBox(alcove)
    root = await createBox(alcove, { user: 'root' })
  })
  after(async () => {
    await alcove?.[Symbol.asyncDispose]()
  })

  /** Starts a program in a sandbox, and waits until it runs. Returns its process id on the host. */
  const startOutside = async (where: Box, command: string): Promise<number> => {
    await where.run(`setsid ${command} >/dev/null 2>&1 &`)
    let pid: number | undefined
    await until(`${command} runs`, async () => {
      pid = await alcove.hostPid(command)
      return pid !== undefined
    })
    return pid ?? assert.fail()
  }

  test('the default user of a sandbox is `daytona`, which has a home directory and is not root', async () => {
    assert.equal(await box.run('id -un; id -u; echo $HOME; pwd'), 'daytona\n1000\n/home/daytona\n/home/daytona')
  })

  test('uid 0 inside a sandbox is an unprivileged uid on the host', async () => {
    assert.equal(await root.run('id -u'), '0')
    const [inside, outside, size] = (await root.run('cat /proc/self/uid_map')).trim().split(/\s+/).map(Number)
    assert.deepEqual([inside, size], [0, 65536])
    assert.ok(outside! >= 100_000, `uid 0 is ${outside} outside`)
    // Start a process in the sandbox, to see which uid the process has on the host.
    const pid = await startOutside(root, 'sleep 4711')
    assert.match(await readFile(`/proc/${pid}/status`, 'utf8'), new RegExp(`^Uid:\\s+${outside}\\s`, 'm'))
  })

  test('processes in a sandbox cannot gain privileges, and have a seccomp filter and at most 11 capabilities', async () => {
    const status = await root.run('cat /proc/self/status')
    assert.match(status, /^NoNewPrivs:\t1$/m)
    assert.match(status, /^Seccomp:\t2$/m)
    const bounding = BigInt(`0x${/^CapBnd:\t(\w+)$/m.exec(status)![1]}`)
    assert.ok(bounding.toString(2).replaceAll('0', '').length <= 11, bounding.toString(16))
    const capSysAdmin = 1n << 21n
    assert.equal(bounding & capSysAdmin, 0n)
    assert.match(await box.run('cat /proc/self/status'), /^CapEff:\t0{16}$/m)
  })

  test('a command gets no open file descriptors except stdin, stdout and stderr', async () => {
    const listing = await root.run('ls -l /proc/self/fd | tail -n +2')
    const numbers = [...listing.matchAll(/ (\d+) -> /g)].map((match) => Number(match[1]))
    // A fourth descriptor is allowed: `ls` has opened the directory that it lists.
    assert.deepEqual(numbers.filter((number) => number > 2).length <= 1, true, listing)
    assert.doesNotMatch(listing, /agent|alcove/)
  })

  test('PID 1 of a sandbox is the agent, and root in the sandbox can neither trace, read nor signal PID 1', async () => {
    assert.match(await root.run('cat /proc/1/comm'), /alcove|agent/)
    for (const attempt of [
      'cat /proc/1/environ',
      'readlink /proc/1/fd/3',
      'cat /proc/1/fd/3',
      'cat /proc/1/maps',
      'head -c1 /proc/1/mem',
    ]) {
      assert.notEqual((await root.try(attempt)).exitCode, 0, attempt)
    }
    await root.try('kill -KILL 1; kill -TERM -1; true')
    assert.equal(await root.run('echo still here'), 'still here')
  })

  test('a sandbox sees no process of the host', async () => {
    const pids = (await root.run('ls /proc | grep -E "^[0-9]+$"')).split('\n')
    assert.ok(pids.length < 20, pids.join(' '))
    assert.equal(
      (await root.try(`kill -0 ${process.pid}`)).exitCode === 0 && !pids.includes(String(process.pid)),
      false,
    )
  })

  test('a sandbox sees no file of the host', async () => {
    const mounts = await root.run('cat /proc/self/mountinfo')
    for (const path of [alcove.data, '/work/main', '/root/.npm']) {
      assert.notEqual((await root.try(`test -e ${path}`)).exitCode, 0, path)
      // Field 4 of a line of mountinfo is the mount point, which must not be this path of the host. Field 3 is the root of the
      // mount, which may contain the path.
      assert.ok(!mounts.split('\n').some((line) => line.split(' ')[4] === path), path)
    }
    assert.notEqual((await root.try('ls /proc/1/root/')).exitCode, 0)
  })

  test('in a sandbox, mounts, new namespaces, tracing and other privileged operations fail', async () => {
    const refused = [
      'mount -t tmpfs none /mnt',
      'mount -o remount,rw /proc/sys',
      'unshare -U true',
      'unshare -m true',
      'echo 1 > /proc/sys/kernel/sysrq',
      'echo c > /proc/sysrq-trigger',
      'echo x > /proc/sys/kernel/core_pattern',
      'mknod /tmp/disk b 8 0',
      'cat /proc/kcore',
      'ls /sys/firmware/*',
      'dmesg',
      'swapon /dev/null',
      'chroot /proc/1/root true',
      'nsenter -t 1 -m true',
      'date -s 2001-01-01',
      'hostname other',
    ]
    for (const command of refused) {
      const { exitCode, result } = await root.try(`${command} 2>&1`)
      assert.notEqual(exitCode, 0, `${command} worked: ${result}`)
    }
  })

  test('kernel settings and control groups are read-only in a sandbox', async () => {
    for (const path of ['/sys/kernel', '/proc/sys/kernel', '/sys/fs/cgroup/memory']) {
      assert.notEqual((await root.try(`mkdir ${path}/x || touch ${path}/x`)).exitCode, 0, path)
    }
    const limits = await root.run('find /sys/fs/cgroup -name memory.max -o -name memory.limit_in_bytes')
    for (const path of limits.split('\n').filter(Boolean)) {
      assert.notEqual((await root.try(`echo 99999999999 > ${path}`)).exitCode, 0, path)
    }
    await root.run('test -n "$(find /sys/fs/cgroup -name cgroup.procs)"')
  })

  test('a sandbox cannot reach the host, metadata addresses or other sandboxes', async () => {
    const server = createServer((socket) => socket.end('host\n'))
    await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve))
    try {
      const { port } = server.address() as { port: number }
      const hostAddresses = Object.values(networkInterfaces())
        .flatMap((list) => list ?? [])
        .filter(({ family, internal }) => family === 'IPv4' && !internal)
        .map(({ address }) => address)
      const gateway = await box.run(
        "awk '$2==\"00000000\"{print $3}' /proc/net/route | head -1 | sed 's/../0x& /g' | awk '{printf \"%d.%d.%d.%d\", $4, $3, $2, $1}'",
      )
      assert.match(gateway, /^\d+\.\d+\.\d+\.\d+$/)
      // The server at `port` answers calls from the host. So if a call from the sandbox fails, isolation is the reason.
      const reached = await fetch(`http://127.0.0.1:${port}`).then(
        () => true,
        (error) => `${error.cause}`.includes('HTTP'),
      )
      assert.ok(reached)
      const sibling = await root.run(
        'hostname -I 2>/dev/null || cat /proc/net/fib_trie | grep -B1 "host LOCAL" | grep -oE "10\\.[0-9.]+" | head -1',
      )
      await root.run(
        '(python3 -m http.server 8123 --bind 0.0.0.0 >/dev/null 2>&1 &) ; curl -sf --retry 60 --retry-delay 1 --retry-connrefused -o /dev/null http://127.0.0.1:8123/',
      )
      const targets = [
        ...hostAddresses.map((address) => `${address}:${port}`),
        `${gateway}:${port}`,
        `${sibling.trim().split(' ')[0]}:8123`,
        '169.254.169.254:80',
        `127.0.0.1:${port}`,
      ]
      for (const target of targets) {
        const { exitCode } = await box.try(`timeout 2 bash -c 'exec 3<>/dev/tcp/${target.replace(':', '/')}'`)
        assert.notEqual(exitCode, 0, `${target} was reached`)
      }
    } finally {
      server.close()
    }
  })

  test('a process that uses too much memory is killed; the process’s sandbox and other sandboxes go on', async () => {
    await using small = await createBox(alcove)
    const { exitCode } = await small.try('python3 -c "x=[bytearray(1<<20) for _ in range(1<<20)]"', { timeout: 120 })
    assert.notEqual(exitCode, 0)
    assert.equal(await small.run('echo alive'), 'alive')
    assert.equal(await box.run('echo alive'), 'alive')
  })

  test('a sandbox of 1 GiB can run 2,500 threads and read its limit; the timeline says that it was reached', async () => {
    await using small = await createBox(alcove, { memory: 1 })
    const threads = `
import threading, resource
done = threading.Event()
for _ in range(2500): threading.Thread(target=done.wait, daemon=True).start()
print(threading.active_count(), resource.getrlimit(resource.RLIMIT_NPROC)[0])
done.set()`
    assert.equal(await small.run(`python3 -c "${threads}"`), '2501 4097')
    assert.equal(
      await small.run('cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2>/dev/null || true'),
      '4096',
    )
    const tooMany = threads.replace('range(2500)', 'range(5000)')
    assert.match((await small.try(`python3 -c "${tooMany}"`)).result, /can't start new thread/)
    const said = async () => JSON.stringify((await alcove.api('GET', `/sandbox/${small.id}/events`)).body)
    const sentence = /as many processes and threads as it may \(limit 4096\), and could not start another/
    for (let tries = 0; tries < 300 && !sentence.test(await said()); tries++)
      await new Promise((resolve) => setTimeout(resolve, 100))
    assert.match(await said(), sentence)
  })

  test('a fork bomb makes no more processes than its sandbox’s limit, and the sandbox can still be deleted', async () => {
    const bombed = await createBox(alcove)
    await bombed.toolbox('POST', '/process/execute', { command: ':(){ :|:& };:', timeout: 3 })
    assert.equal(await box.run('echo alive'), 'alive')
    assert.equal((await alcove.api('DELETE', `/sandbox/${bombed.id}`)).status, 200)
    const gone = async () => (await alcove.api('GET', `/sandbox/${bombed.id}`)).status === 404
    for (let tries = 0; tries < 300 && !(await gone()); tries++)
      await new Promise((resolve) => setTimeout(resolve, 100))
    assert.ok(await gone())
  })

  test('the memory that the buffers of a sandbox’s sockets can take is limited', { skip: countsBuffers }, async () => {
    const fill = `
import socket
server = socket.create_server(('127.0.0.1', 0))
held, sent = [], 0
for _ in range(100):
  one = socket.create_connection(server.getsockname())
  held += [one, server.accept()[0]]
  one.setblocking(False)
  try:
    while True: sent += one.send(bytes(65536))
  except BlockingIOError: pass
print(sent >> 20)`
    await using small = await createBox(alcove, { memory: 1 })
    const mebibytes = Number(await small.run(`python3 -c "${fill}"`))
    assert.ok(mebibytes > 10 && mebibytes < 200, `${mebibytes} MiB`)
  })

  test('a sandbox that sends packets to all addresses of its subnet makes no neighbour entries on the host', async () => {
    const send = `
import socket
for n in range(3000):
  one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
  one.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'eth0')
  one.sendto(b'x', socket.MSG_DONTROUTE, ('203.%d.%d.1' % divmod(n, 256), 9))
print('sent')`
    assert.equal(await box.run(`python3 -c "${send}"`), 'sent')
    // In the sandbox's network namespace, `ip neigh` may list only the permanent neighbour entry. It does not list entries that
    // need no ARP. Those are harmless, because the kernel removes some when there are too many.
    const inItsNetwork = ['--net', '--target', String(await startOutside(box, 'sleep 4713')), 'ip', 'neigh', 'show']
    const held = execFileSync('nsenter', inItsNetwork, { encoding: 'utf8' }).trim().split('\n')
    assert.deepEqual(
      held.map((line) => line.split(' ').at(-1)),
      ['PERMANENT'],
    )
  })

  test('a sandbox is ended if it fills the host’s memory with netlink sockets, which no limit counts', async () => {
    const fill = `
import socket, struct, time
held = []
ask = struct.pack('IHHIIBBHiII', 32, 18, 1, 1, 0, 0, 0, 0, 1, 0, 0)
for _ in range(4000):
  one = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
  one.setblocking(False)
  held.append(one)
  try:
    for _ in range(400): one.send(ask)
  except OSError: pass
time.sleep(60)`
    await using greedy = await createBox(alcove)
    await greedy.toolbox('POST', '/process/execute', { command: `python3 -c "${fill}"`, timeout: 60 })
    const found = async () => (await alcove.api('GET', `/sandbox/${greedy.id}`)).body as Record<string, unknown>
    for (let tries = 0; tries < 100 && (await found())['state'] === 'started'; tries++)
      await new Promise((resolve) => setTimeout(resolve, 100))
    const { state, errorReason } = await found()
    assert.equal(state, 'error')
    assert.match(String(errorReason), /netlink sockets/)
    const events = (await alcove.api('GET', `/sandbox/${greedy.id}/events`)).body
    assert.match(JSON.stringify(events), /netlink sockets held more than 64 MiB/)
    assert.equal(await box.run('echo alive'), 'alive')
  })

  test('a sandbox that fills its disk gets ENOSPC, and another sandbox can still write to its own disk', async () => {
    await using full = await createBox(alcove)
    const { exitCode, result } = await full.try(
      'dd if=/dev/zero of=$HOME/big bs=1M count=8192 2>&1; df -h / | tail -1',
      { timeout: 300 },
    )
    assert.match(result, /No space left|Disk quota exceeded/, `exit ${exitCode}`)
    await full.run('rm $HOME/big; sync; echo room > $HOME/again; cat $HOME/again')
    await using other = await createBox(alcove)
    await other.run('dd if=/dev/zero of=$HOME/file bs=1M count=64 2>/dev/null')
  })
})
