// Tests which CPUs, memory, disk and privileges programs in a sandbox see, and the timeline of a sandbox that ran out of memory.
import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { after, before, suite, test } from 'node:test'
import { type Box, createBox, until } from './box.ts'
import { type Platform, platform } from './harness.ts'

type Event = { from: string | null; to: string; by: { kind: string; id: string }; reason?: string; cause?: object }

suite('CPUs, memory, disk, privileges and timeline of a sandbox', () => {
  let alcove: Platform
  before(async () => {
    alcove = await platform()
  })
  after(async () => {
    await alcove?.[Symbol.asyncDispose]()
  })

  const becomes = (box: Box, state: string) =>
    until(`it is ${state}`, async () => (await alcove.api('GET', `/sandbox/${box.id}`)).body['state'] === state, 60)
  const eventsOf = async ({ id }: Box) =>
    (await alcove.api('GET', `/sandbox/${id}/events`)).body['items'] as unknown as Event[]

  const programs = [
    ['nproc', 'cpus'],
    ["python3 -c 'import os; print(os.cpu_count())'", 'cpus'],
    ["python3 -c 'import os; print(len(os.sched_getaffinity(0)))'", 'cpus'],
    ["node -e 'console.log(os.availableParallelism())'", 'cpus'],
    ['grep -c ^processor /proc/cpuinfo', 'cpus'],
    ["free -m | awk '/^Mem:/ { print $2 }'", 'memory'],
    ["node -e 'console.log(os.totalmem() / 2 ** 20)'", 'memory'],
  ] as const

  const seen = async (box: Box, of: 'cpus' | 'memory') => {
    const said: number[] = []
    for (const [program, what] of programs) if (what === of) said.push(Number(await box.run(program)))
    return [...new Set(said)]
  }

  test('programs see the CPUs and the memory of the sandbox, not of the host, even after a resize', async () => {
    await using box = await createBox(alcove, { cpu: 1, memory: 1 })
    assert.deepEqual([await seen(box, 'cpus'), await seen(box, 'memory')], [[1], [1024]])
    assert.equal((await alcove.api('POST', `/sandbox/${box.id}/resize`, { cpu: 2, memory: 2 })).status, 200)
    await becomes(box, 'started')
    assert.deepEqual(
      [await seen(box, 'cpus'), await seen(box, 'memory')],
      [[Math.min(2, availableParallelism())], [2048]],
    )
  })

  test('a program file with capabilities that sandboxes lack can still be run, but gets no such capability', async () => {
    await using box = await createBox(alcove)
    await using asRoot = await createBox(alcove, { user: 'root' })
    // Gives the file `p` the capability CAP_NET_RAW, permitted and effective, which Debian's `ping` also has. The bytes have the
    // format of capabilities(7), version 2.
    const give = "os.setxattr('p', 'security.capability', struct.pack('<5I', 0x02000001, 1 << 13, 0, 0, 0))"
    const prepare = `cp /bin/echo p && python3 -c "import os, struct; ${give}"`
    const use = 'cd /tmp && ./p ran'
    await asRoot.run(`cd /tmp && ${prepare}`)
    assert.equal(await asRoot.run(use), 'ran')
    assert.equal(await asRoot.run(`${use} && setpriv --reuid 1000 --clear-groups ./p too`), 'ran\ntoo')
    assert.equal(await box.run('grep -c " / overlay [^ ]*nosuid" /proc/mounts || grep " / " /proc/mounts'), '1')
  })

  test('in a sandbox, Landlock works, new user namespaces cannot be made, and IS_SANDBOX is set', async () => {
    await using box = await createBox(alcove)
    // The Python program makes a Landlock ruleset that forbids all writing to files (landlock(7)).
    const landlock = `
import ctypes, struct
call = ctypes.CDLL(None, use_errno=True).syscall
open("/tmp/f", "w").write("before")
rules = call(444, ctypes.create_string_buffer(struct.pack("<Q", 2)), 8, 0)
ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
print("restricted", call(446, rules, 0))
try: open("/tmp/f", "w")
except PermissionError: print("held", open("/tmp/f").read())
`
    const { body } = await box.toolbox('POST', '/process/code-run', { code: landlock, language: 'python' })
    assert.equal(body['result'], 'restricted 0\nheld before\n')
    assert.match((await box.try('unshare -Ur id')).result, /Operation not permitted/)
    assert.equal(await box.run('echo $IS_SANDBOX'), '1')
  })

  test('ping works for root and the default user, by a socket that needs no capability', async () => {
    const ping =
      'import socket, struct\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP); s.settimeout(10)\n' +
      's.sendto(struct.pack("!BBHHH", 8, 0, 0, 0, 1) + b"hello", ("127.0.0.1", 0)); print(s.recv(100)[-5:].decode())'
    for (const user of ['root', 'daytona']) {
      await using box = await createBox(alcove, { user })
      assert.equal(await box.run(`python3 -c '${ping}'`), 'hello', user)
    }
  })

  test('a sandbox’s disk is no faster than its speed limit, and programs in the sandbox can read this limit', async (t) => {
    await using box = await createBox(alcove)
    const files = '/sys/fs/cgroup/blkio/blkio.throttle.*_bps_device /sys/fs/cgroup/io.max'
    const limits = (await box.try(`cat ${files} 2>/dev/null | grep -o '[0-9]*:[0-9]* .*'`)).result.trim()
    const bytes = 200 * 1024 * 1024
    if (limits === '') return t.skip('this host has no limit of disk input and output: see alcove doctor')
    assert.match(
      limits,
      new RegExp(`^(\\d+:\\d+) (${bytes}\n\\1 ${bytes}|rbps=${bytes} wbps=${bytes} riops=max wiops=max)$`),
    )
  })

  test('the timeline says that a process was killed for lack of memory while the sandbox kept running', async () => {
    await using box = await createBox(alcove, { memory: 1 })
    assert.equal((await box.try('tail /dev/zero')).exitCode, 137)
    const isTold = async () => (await eventsOf(box)).some(({ from, to }) => from === to)
    await until('its timeline says so', isTold)
    const event = (await eventsOf(box)).find(({ from, to }) => from === to)
    assert.equal(event?.to, 'started')
    assert.equal(event?.reason, 'It ran out of memory (limit 1 GiB), and a process was killed for it.')
    assert.equal(await box.run('echo alive'), 'alive')
  })

  test('the timeline says that PID 1 was killed from outside, and names no earlier lack of memory as cause', async () => {
    await using box = await createBox(alcove, { memory: 1 })
    assert.equal((await box.try('tail /dev/zero')).exitCode, 137)
    // The kernel ignores a SIGKILL for PID 1 that comes from inside the sandbox. So kill PID 1 from the host.
    await box.run('sudo kill -9 1 || kill -9 1 || true')
    assert.equal(await box.run('echo alive'), 'alive')
    const pid = (await alcove.leftovers())
      .filter((line) => line.includes(box.id))
      .map((line) => /^process (\d+) \(\/dev\/\.alcove\/agent/.exec(line)?.[1])
      .find(Boolean)
    assert.ok(pid, 'its first process is on the host')
    process.kill(Number(pid), 'SIGKILL')
    await becomes(box, 'stopped')
    const [end] = await eventsOf(box)
    assert.deepEqual(
      [end?.from, end?.to, end?.by.kind, end?.reason],
      ['started', 'stopped', 'runner', 'Its first process was ended from outside the sandbox.'],
    )
    assert.deepEqual(end?.cause, { detail: end?.reason })
  })

  test('the timeline says who stopped, started and deleted a sandbox, and is readable after the delete', async () => {
    const box = await createBox(alcove)
    await alcove.api('POST', `/sandbox/${box.id}/stop`)
    await becomes(box, 'stopped')
    await alcove.api('DELETE', `/sandbox/${box.id}`)
    await until('it is gone', async () => (await alcove.api('GET', `/sandbox/${box.id}`)).status === 404)
    await until('the runner has said so', async () => (await eventsOf(box))[0]?.to === 'destroyed')
    const moves = (await eventsOf(box)).map(({ from, to, by }) => `${from} ${to} ${by.kind}`)
    assert.deepEqual(moves.toReversed().slice(-4), [
      'started stopping user',
      'stopping stopped runner',
      'stopped destroying user',
      'destroying destroyed runner',
    ])
  })
})
