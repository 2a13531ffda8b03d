// A process that can open an inode can see by inotify when other processes read the inode, and notices their locks. So no file of a
// sandbox may have an inode of another sandbox or of the host.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { after, before, suite, test } from 'node:test'
import { type Box, createBox, until } from './box.ts'
import { type Platform, platform } from './harness.ts'

const places = `cut -d' ' -f5 /proc/self/mountinfo
find /dev /sys /etc /bin/sh /usr/bin/env /proc/sys /proc/self/ns/ /proc/1/exe -maxdepth 3`
const inodesIn = (listing: string) =>
  new Map(listing.split('\n').flatMap((line) => (line.includes(' ') ? [line.split(' ', 2) as [string, string]] : [])))
const list = `( ${places.replace('\n', '; ')} ) 2>/dev/null | tr '\\n' '\\0' | xargs -0 stat -L -c '%d:%i %n' 2>/dev/null || true`

/** A program that prints `ready`, and then the path of each file on which inotify reports an event. */
const watcher = `import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
queue = libc.inotify_init1(0)
paths = {}
for path in sys.argv[1:]:
  watch = libc.inotify_add_watch(queue, path.encode(), 0xfff)
  if watch < 0: sys.exit(os.strerror(ctypes.get_errno()) + " " + path)
  paths[watch] = path
print("ready", flush=True)
while True:
  events = os.read(queue, 65536)
  while events:
    watch, _, _, length = struct.unpack_from("iIII", events)
    events = events[16 + length:]
    print(paths[watch], flush=True)
`

suite('separation of the files and devices of two sandboxes', () => {
  let alcove: Platform
  let one: Box
  let other: Box
  before(async () => {
    alcove = await platform()
    one = await createBox(alcove, { user: 'root' })
    other = await createBox(alcove, { user: 'root' })
  })
  after(async () => {
    await one?.[Symbol.asyncDispose]()
    await other?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  test('two sandboxes share no inode with each other or the host: in mounts, /dev, /sys and /proc/self/ns', async () => {
    const mine = inodesIn(await one.run(list))
    const theirs = inodesIn(await other.run(list))
    const ofHost = inodesIn(
      execFileSync('sh', ['-c', list], {
        encoding: 'utf8',
        maxBuffer: 64 * 1024 * 1024,
        stdio: ['ignore', 'pipe', 'ignore'],
      }),
    )
    for (const path of [
      '/dev/null',
      '/dev/zero',
      '/dev/.alcove/agent',
      '/sys/kernel',
      '/proc/self/ns/time_for_children',
    ])
      assert.ok([...mine.values()].includes(path), path)
    // Leave the sandbox's network namespace out of the comparison, because the runner keeps this namespace mounted on the host on
    // purpose.
    ofHost.delete([...mine].find(([, path]) => path === '/proc/self/ns/net')?.[0] ?? '')
    const shared = (others: ReadonlyMap<string, string>) => [...mine].filter(([inode]) => others.has(inode))
    assert.deepEqual([shared(theirs), shared(ofHost)], [[], []])
  })

  test('a sandbox that watches its device files does not see that another sandbox uses such files', async () => {
    const touched = ['/dev/zero', '/dev/random', '/dev/urandom', '/dev/.alcove/agent', '/sys/devices/system/cpu/online']
    const mine = '/dev/full'
    await one.run(`cat > /tmp/watch.py <<'END'\n${watcher}END`)
    await one.run(
      `(python3 /tmp/watch.py ${touched.join(' ')} ${mine} > /tmp/seen 2>&1 & echo $! > /tmp/pid) < /proc/version`,
    )
    await until('it watches', async () => (await one.run('cat /tmp/seen')).startsWith('ready'))
    await other.run(`for each in ${touched.join(' ')}; do head -c1 $each | wc -c; done`)
    await using third = await createBox(alcove, { user: 'root' })
    await third.run('true')
    // Cause an event in the watching sandbox itself. inotify keeps the order, so any event of the other sandbox would arrive
    // earlier.
    await one.run(`head -c1 ${mine} | wc -c`)
    await until('its own event', async () => (await one.run('cat /tmp/seen')).includes(mine))
    const seen = new Set((await one.run('cat /tmp/seen; kill $(cat /tmp/pid)')).split('\n'))
    assert.deepEqual([...seen], ['ready', mine])
  })

  test('a lock on a device or system file in one sandbox does not lock the file in another sandbox', async () => {
    const locked = '/dev/zero /dev/.alcove/agent /proc/self/ns/time /sys/devices/system/cpu/online'
    await one.run(`for each in ${locked}; do setsid flock $each sleep 60 < /proc/version > /tmp/out 2>&1 & done`)
    await until('they are locked', async () => (await one.try(`flock --nonblock /dev/zero true`)).exitCode !== 0)
    for (const each of locked.split(' ')) await other.run(`flock --exclusive --nonblock ${each} true`)
  })

  test('in a sandbox, /sys/fs/cgroup is read-only, and shows no cgroup of another sandbox', async () => {
    assert.match((await one.try('touch /sys/fs/cgroup/file')).result, /Read-only file system/)
    const names = await one.run('find /sys/fs/cgroup -mindepth 1 -type d -name "*alcove*" -o -name "*sandbox*" -type d')
    assert.equal(names, '')
  })
})
