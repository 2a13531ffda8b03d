// Volumes of a real server, used through the public SDK.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import type { Sandbox } from '@daytona/sdk'
import { until } from './box.ts'
import { type Platform, platform } from './harness.ts'
import { connectTo } from './sdk-client.ts'

/**
 * Checks in a volume what programs expect of a local disk, such as locks and renames. Network file systems often lack some of these
 * features.
 */
const posix = `
import errno, fcntl, mmap, os, sqlite3
os.chdir('/data')
with open('log', 'w') as log: log.write('one\\n')
os.rename('log', 'renamed'); os.replace('renamed', 'log')
fd = os.open('log', os.O_WRONLY | os.O_APPEND); os.write(fd, b'two\\n'); os.fsync(fd); os.close(fd)
os.link('log', 'linked'); os.symlink('log', 'symbolic'); os.mkfifo('pipe')
os.setxattr('log', 'user.color', b'red'); assert os.getxattr('linked', 'user.color') == b'red'
assert os.stat('linked').st_nlink == 2 and open('symbolic').read() == 'one\\ntwo\\n'
with open('map', 'wb') as file: file.truncate(4096)
with open('map', 'r+b') as file:
    shared = mmap.mmap(file.fileno(), 0); shared[:5] = b'hello'; shared.flush()
assert open('map', 'rb').read(5) == b'hello'
database = sqlite3.connect('facts.db'); database.execute('pragma journal_mode = wal')
database.execute('create table facts (fact)'); database.execute("insert into facts values ('kept')"); database.commit(); database.close()
held = open('lock', 'w'); fcntl.flock(held, fcntl.LOCK_EX)
directory = os.open('.', os.O_RDONLY)
for request in (0x5000940e, 0x50009401, 0xd000941e):
    try: fcntl.ioctl(directory, request, bytearray(4096))
    except OSError as error: assert error.errno == errno.ENOTTY, error
    else: raise AssertionError(hex(request))
copy = open('copy', 'wb')
try: fcntl.ioctl(copy.fileno(), 0x40049409, os.open('log', os.O_RDONLY))
except OSError as error: assert error.errno == errno.EOPNOTSUPP, error
else: raise AssertionError('shares bytes')
import shutil; shutil.copyfile('log', 'copy'); assert open('copy').read() == 'one\\ntwo\\n'
for call in (lambda: os.mknod('device', 0o20666, os.makedev(1, 3)), lambda: os.chown('log', 4000000000, -1)):
    try: call()
    except OSError: pass
    else: raise AssertionError('allowed')
open('/tmp/done', 'w').close()
import time; time.sleep(1000)
`

const isLocked = `
import fcntl
try: fcntl.flock(open('/shared/lock', 'w'), fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError: print('locked')
`

suite('volumes with the SDK', () => {
  let alcove: Platform
  before(async () => {
    alcove = await platform()
  })
  after(async () => {
    await alcove?.[Symbol.asyncDispose]()
  })

  const run = async (sandbox: Sandbox, command: string) => {
    const { exitCode, result } = await sandbox.process.executeCommand(command)
    assert.equal(exitCode, 0, `${command}: ${result}`)
    return result.trim()
  }

  test('two sandboxes share a volume, which outlives both; a deleted volume leaves nothing on the host', async () => {
    await using daytona = connectTo(alcove)
    const name = `shared-${randomUUID().slice(0, 8)}`
    const volume = await daytona.volume.get(name, true)
    assert.deepEqual([volume.state, (await daytona.volume.get(name)).id], ['ready', volume.id])
    assert.ok((await daytona.volume.list()).some(({ id }) => id === volume.id))
    const [one, two] = await Promise.all([
      daytona.create({ volumes: [{ volumeId: volume.id, mountPath: '/data' }] }),
      daytona.create({
        volumes: [
          { volumeId: name, mountPath: '/shared' },
          { volumeId: volume.id, mountPath: '/home/daytona/mine', subpath: 'users/mine' },
        ],
      }),
    ])
    const disk = join(alcove.data, 'runner/pool/volumes', volume.id)
    try {
      assert.deepEqual(
        two.volumes?.map(({ volumeId, mountPath, subpath }) => [volumeId, mountPath, subpath]),
        [
          [volume.id, '/shared', undefined],
          [volume.id, '/home/daytona/mine', 'users/mine'],
        ],
      )
      await one.fs.uploadFile(Buffer.from(posix), '/tmp/posix.py')
      await run(
        one,
        'setsid python3 /tmp/posix.py > /tmp/said 2>&1 & while [ ! -e /tmp/done ]; do sleep 0.1; grep . /tmp/said && exit 1; done; true',
      )
      assert.equal(
        await run(two, 'stat -c %U /shared/log; cat /shared/linked; head -c 5 /shared/map'),
        'daytona\none\ntwo\nhello',
      )
      await two.fs.uploadFile(Buffer.from(isLocked), '/tmp/locked.py')
      assert.equal(await run(two, 'python3 /tmp/locked.py'), 'locked')
      assert.equal(
        await run(
          two,
          "python3 -c \"import sqlite3; print(*sqlite3.connect('/shared/facts.db').execute('select * from facts').fetchone())\"",
        ),
        'kept',
      )
      await run(two, 'echo mine > /home/daytona/mine/file')
      assert.equal(await run(one, 'cat /data/users/mine/file'), 'mine')
      // The file calls of the toolbox work in a volume as in any other directory.
      await one.fs.uploadFile(Buffer.from('uploaded'), '/data/upload')
      assert.equal(String(await two.fs.downloadFile('/shared/upload')), 'uploaded')

      await assert.rejects(daytona.volume.delete(volume), /mounts this volume/)
      await two.stop()
      await two.start()
      assert.equal(await run(two, 'cat /shared/users/mine/file'), 'mine')
    } finally {
      await one.delete(60, true)
      await assert.rejects(daytona.volume.delete(volume), /mounts this volume/)
      await two.delete(60, true)
    }
    assert.ok(existsSync(disk))
    // Repeat the delete, because control refuses to delete the volume until the runner has reported that the volume's sandboxes are
    // removed.
    await until('nothing mounts the volume', () =>
      daytona.volume.delete(volume).then(
        () => true,
        () => false,
      ),
    )
    await until('the volume is gone', async () => !(await daytona.volume.list()).some(({ id }) => id === volume.id))
    assert.equal(existsSync(disk), false)
    await assert.rejects(daytona.volume.get(name), /not found/)
  })

  test('a create with an unknown, malformed or unusable volume fails with a reason, and makes no sandbox', async () => {
    await using daytona = connectTo(alcove)
    const { id } = await daytona.volume.create('words')
    await assert.rejects(daytona.volume.create('words'), /already exists/)
    const refused: [volumes: { volumeId: string; mountPath: string; subpath?: string }[], says: RegExp][] = [
      [[{ volumeId: 'none', mountPath: '/x' }], /Volume none not found/],
      [[{ volumeId: id, mountPath: 'x' }], /absolute/],
      [[{ volumeId: id, mountPath: '/proc/self' }], /must not be in \/proc/],
      [[{ volumeId: id, mountPath: '/x', subpath: '../y' }], /subpath/],
      [
        [
          { volumeId: id, mountPath: '/x' },
          { volumeId: id, mountPath: '/x/y' },
        ],
        /must not be inside another/,
      ],
    ]
    // Other tests create sandboxes on this server at the same time. The label identifies the sandboxes of this test.
    const labels = { refused: id }
    for (const [volumes, says] of refused) await assert.rejects(daytona.create({ volumes, labels }), says)
    const query = new URLSearchParams({ labels: JSON.stringify(labels) })
    assert.equal((await alcove.api('GET', `/sandbox/paginated?${query}`)).body['total'], 0)
    await daytona.volume.delete({ id } as never)
  })
})
