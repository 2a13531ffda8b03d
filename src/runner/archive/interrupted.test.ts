// Tests which files stay if packing or unpacking fails or is killed, and which rights tar has on a disk. Needs root.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { needsRoot } from '#test/needs-root.ts'
import { uidBase } from '../oci/ids.ts'
import { builtLauncher } from '../testing/test-host.ts'
import { ArchiveFailed } from './failed.ts'
import { findArchive, packDisk } from './pack.ts'
import { patient } from './patient-store.ts'
import { removeArchives } from './remove.ts'
import { type ObjectStore, openStore } from './store.ts'
import { type DiskParts, extentOf, readDisk, writeDisk } from './tar.ts'
import { bound, fails, objects, sandboxId, watched, withoutSockets } from './testing/archives.ts'
import { diskIn, listDisk, makeNastyDisk, Scratch } from './testing/disks.ts'
import { unpackDisk } from './unpack.ts'

const launcher = builtLauncher()

/** Makes files that only root of the host can make, and files that a sandbox can make. */
const armed = `import os, struct, sys
BASE = int(sys.argv[2])
os.chdir(sys.argv[1])
os.mkdir("upper"); os.mkdir("etc"); os.chown("upper", BASE, BASE); os.chdir("upper")
def capable(name, words):
    open(name, "w").close()
    os.setxattr(name, "security.capability", struct.pack("<%dI" % len(words), *words))
capable("own", [0x03000001, 1 << 13, 0, 0, 0, BASE + 7])
capable("hosts", [0x02000001, 1 << 21, 0, 0, 0])
capable("foreign", [0x03000001, 1 << 21, 0, 0, 0, 0])
os.setxattr("own", "security.evil", b"x")
os.setxattr("own", "trusted.evil", b"x")
os.setxattr("own", "user.mine", b"x")
os.setxattr(".", "trusted.overlay.opaque", b"y")
for name, value in (("renamed", b"/usr/share/doc"), ("renamed-beside", b"doc"), ("above", b"/usr/../../root"), ("up", b".."),
  ("twice", b"/usr//share"), ("beside-itself", b"a/b"), ("nowhere", b""), ("root", b"/"), ("torn", b"/a\\0b")):
    os.mkdir(name); os.setxattr(name, "trusted.overlay.redirect", value)
os.setxattr("own", "trusted.overlay.redirect", b"/etc/shadow")
os.setxattr("own", "trusted.overlay.metacopy", b"")
os.setxattr("renamed", "trusted.overlay.metacopy", b"")
os.mknod("null", 0o666 | 0o020000, os.makedev(1, 3))
os.mknod("whiteout", 0o020000, os.makedev(0, 0))
for name, owner in (("set-id", BASE), ("set-id-of-root", 0)):
    open(name, "w").close(); os.chown(name, owner, owner); os.chmod(name, 0o6755)
`

/** A program that prints the type, the permissions and the attributes of each file. */
const described = `import json, os, stat, sys
os.chdir(sys.argv[1])
print(json.dumps({name: [stat.filemode(os.lstat(name).st_mode), *sorted(os.listxattr(name))] for name in [".", *sorted(os.listdir("."))]}))
`
const python = (program: string, ...args: string[]) =>
  execFileSync('/usr/bin/python3', ['-c', program, ...args], { encoding: 'utf8' })

suite('packing and unpacking, interrupted', { skip: needsRoot }, () => {
  let scratch: Scratch
  let disk: DiskParts
  before(() => {
    scratch = new Scratch()
    disk = makeNastyDisk(scratch.at('disk'))
  })
  after(() => scratch[Symbol.dispose]())
  const storeAt = (name: string) => openStore({ kind: 'directory', path: scratch.at(name) })

  const textOf = (pid: string, file: string): string => {
    try {
      return readFileSync(`/proc/${pid}/${file}`, 'utf8')
    } catch {
      return ''
    }
  }

  /** Lists the processes whose command line contains the scratch directory, and their children, such as tar. */
  const working = () => {
    const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    const named = new Set(all.filter((pid) => textOf(pid, 'cmdline').includes(scratch.path)))
    return all.filter((pid) => named.has(pid) || named.has(/^PPid:\s+(\d+)$/m.exec(textOf(pid, 'status'))?.[1] ?? ''))
  }

  /** Waits until tar runs. Returns its process id. */
  const runningTar = async (): Promise<string> => {
    for (;;) {
      const tar = working().find((pid) => textOf(pid, 'comm') === 'tar\n')
      if (tar !== undefined) return tar
      await wait(10)
    }
  }

  /** Packs the disk and then unpacks it. Calls `look` during each, with the process id of tar. */
  const lookAtBoth = async <T>(name: string, look: (pid: string) => T): Promise<T[]> => {
    const seen: T[] = []
    const pieces: Buffer[] = []
    for await (const piece of readDisk(disk)) if (pieces.push(piece) === 1) seen.push(look(await runningTar()))
    const unpacking = async function* () {
      yield pieces[0]!
      seen.push(look(await runningTar()))
      yield* pieces.slice(1)
    }
    const directory = scratch.make(name)
    await writeDisk(unpacking(), directory)
    assert.deepEqual(listDisk(directory), withoutSockets(listDisk(scratch.at('disk'))))
    return seen
  }

  test('if packing a disk is killed, no subprocess is left, and the next packing uses the stored chunks', async () => {
    const program = join(import.meta.dirname, 'testing/killable-packer-program.ts')
    const child = spawn(process.execPath, [program, scratch.at('resumed'), scratch.at('disk')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(child.stdout, 'data')
    child.kill('SIGKILL')
    await once(child, 'close')
    while (working().length > 0) await wait(10)
    const store = storeAt('resumed')
    const safe = (await objects(store)).length
    assert.ok(safe >= 1)
    const second = watched(store)
    const archive = await packDisk({ store: second.store, sandboxId, archiveId: 'first', disk })
    const chunks = (await objects(store)).length - 1
    assert.ok(second.puts() <= chunks - 1, `${second.puts()} of ${chunks} chunks were written again`)
    const directory = scratch.make('resumed-disk')
    await unpackDisk({ launcher, store, sandboxId, archive, disk: diskIn(directory) })
    assert.deepEqual(listDisk(directory), withoutSockets(listDisk(scratch.at('disk'))))
  })

  test('while a disk of many files is packed or unpacked, tar has at most 1 GiB of address space', async () => {
    const bounds = await lookAtBoth('bounded', (pid) =>
      /^Max address space +(\S+) +(\S+) +bytes/m.exec(textOf(pid, 'limits'))?.slice(1).map(Number),
    )
    assert.deepEqual(bounds, [
      [1024 ** 3, 1024 ** 3],
      [1024 ** 3, 1024 ** 3],
    ])
  })

  test('tar sees only the disk that it packs or unpacks, and programs of the host; it cannot gain rights', async () => {
    // Bits of capabilities(7): chown, dac_override, dac_read_search, fowner, fsetid, sys_admin, mknod, setfcap.
    const allowed = [0, 1, 2, 3, 4, 21, 27, 31].reduce((bits, bit) => bits + 2 ** bit, 0)
    const seen = await lookAtBoth('confined', (pid) => {
      const status = textOf(pid, 'status')
      const said = (name: string) => new RegExp(`^${name}:\\s+(\\S+)$`, 'm').exec(status)?.[1]
      const disks = textOf(pid, 'mountinfo')
        .split('\n')
        .filter((line) => line.includes(' /disk '))
      return {
        rights: ['CapBnd', 'CapPrm', 'CapEff'].map((name) => Number.parseInt(said(name) ?? '', 16)),
        others: ['NoNewPrivs', 'Seccomp', 'CapInh', 'CapAmb'].map((name) => Number(said(name))),
        root: readdirSync(`/proc/${pid}/root`).filter((name) => !/^s?bin$|^lib/.test(name)),
        disks: disks.map((line) => line.split(' ')[5]?.replace(/,relatime|,noatime/, '')),
        interfaces: textOf(pid, 'net/dev').split('\n').slice(2, -1).length,
      }
    })
    const expected = (disk: string) => ({
      rights: [allowed, allowed, allowed],
      others: [1, 2, 0, 0],
      root: ['confine', 'disk', 'old', 'proc', 'usr'],
      disks: [disk],
      interfaces: 1,
    })
    assert.deepEqual(seen, [expected('ro,nosuid,nodev'), expected('rw,nosuid,nodev')])
  })

  test('an aborted packing or unpacking of a disk fails with the abort’s reason, and leaves no files', async () => {
    const store = storeAt('stopped')
    const reason = new Error('the sandbox is being destroyed')
    const stopping = () => {
      const abort = new AbortController()
      return { signal: abort.signal, onProgress: () => abort.abort(reason) }
    }
    await assert.rejects(packDisk({ store, sandboxId, archiveId: 'a1', disk, ...stopping() }), reason)
    assert.equal(await findArchive(store, sandboxId, 'a1'), undefined)
    const archive = await packDisk({ store, sandboxId, archiveId: 'a1', disk })
    const directory = scratch.make('stopped-disk')
    const unpacking = unpackDisk({ launcher, store, sandboxId, archive, disk: diskIn(directory), ...stopping() })
    await assert.rejects(unpacking, reason)
    assert.deepEqual(readdirSync(directory), [])
    assert.deepEqual(working(), [])
  })

  test('packing a disk into a full store fails with an error that says so, and damages no stored object', async () => {
    const store = openStore({ kind: 'directory', path: scratch.small('full', 6) })
    await assert.rejects(packDisk({ store, sandboxId, archiveId: 'a1', disk }), fails('store full', /is full/))
    assert.equal(await findArchive(store, sandboxId, 'a1'), undefined)
    assert.deepEqual(working(), [])
    await removeArchives({ store, sandboxId })
    assert.deepEqual(await objects(store), [])
  })

  test('if the store fails while a disk is packed, packing fails after three attempts; its error says why', async () => {
    const sound = storeAt('gone')
    let left = 2
    const failing: ObjectStore = {
      ...bound(sound),
      put: async (...args) => {
        if (left-- <= 0) throw new ArchiveFailed('store down', 'The archive store cannot be reached: ECONNRESET.')
        return sound.put(...args)
      },
    }
    const packing = packDisk({ store: patient(failing, [1, 1]), sandboxId, archiveId: 'a1', disk })
    await assert.rejects(packing, fails('store down', /ECONNRESET\. Tried 3 times/))
    assert.deepEqual(working(), [])
  })

  test('unpacking restores no attribute, capability, device or set-id bit that only host root can set', async () => {
    const store = storeAt('armed')
    python(armed, scratch.make('armed-disk'), String(uidBase))
    const packed = diskIn(scratch.at('armed-disk'))
    const archive = await packDisk({ store, sandboxId, archiveId: 'a1', disk: packed })
    await unpackDisk({ launcher, store, sandboxId, archive, disk: diskIn(scratch.make('disarmed')) })
    assert.deepEqual(JSON.parse(python(described, join(scratch.at('disarmed'), 'upper'))), {
      '.': ['drwxr-xr-x', 'trusted.overlay.opaque'],
      ...Object.fromEntries(
        ['above', 'beside-itself', 'nowhere', 'root', 'torn', 'twice', 'up'].map((name) => [name, ['drwxr-xr-x']]),
      ),
      renamed: ['drwxr-xr-x', 'trusted.overlay.redirect'],
      'renamed-beside': ['drwxr-xr-x', 'trusted.overlay.redirect'],
      foreign: ['-rw-r--r--'],
      hosts: ['-rw-r--r--'],
      own: ['-rw-r--r--', 'security.capability', 'user.mine'],
      'set-id': ['-rwsr-sr-x'],
      'set-id-of-root': ['-rwxr-xr-x'],
      whiteout: ['c---------'],
    })
  })

  test('if a disk is too small for an archive, unpacking fails with an error that says so, and adds no files', async () => {
    const store = storeAt('large')
    const archive = await packDisk({ store, sandboxId, archiveId: 'a1', disk })
    const directory = scratch.small('small-disk', 8)
    const written: number[] = []
    const unpack = () =>
      unpackDisk({
        launcher,
        store,
        sandboxId,
        archive,
        disk: diskIn(directory),
        onProgress: ({ bytes }) => written.push(bytes),
      })
    await assert.rejects(
      unpack(),
      fails('disk', /^The archive needs [\d.]+ MiB of disk, and this runner has 8 MiB free\.$/),
    )
    assert.deepEqual([written, readdirSync(directory)], [[], []])
    // The disk has enough space, but too few inodes. A manifest does not count inodes, so only the restore itself can fail.
    execFileSync('mount', ['-o', 'remount,size=1g,nr_inodes=40', directory])
    await assert.rejects(unpack(), fails('disk', /cannot be unpacked: .*No space left on device/))
    assert.deepEqual(readdirSync(directory), [])
  })

  test('packing a disk is refused if the disk contains a path that is too long for tar to restore', async () => {
    const directory = scratch.at('too-deep')
    const deep = makeNastyDisk(directory)
    const names = Array.from({ length: 20 }, () => 'd'.repeat(250))
    const script = [
      'import os, sys',
      'os.chdir(sys.argv[1])',
      'for name in sys.argv[2:]:',
      ' os.mkdir(name)',
      ' os.chdir(name)',
    ]
    const child = spawn('/usr/bin/python3', ['-c', script.join('\n'), deep.upper, ...names], { stdio: 'inherit' })
    assert.deepEqual(await once(child, 'close'), [0, null])
    const packing = packDisk({ store: storeAt('deep'), sandboxId, archiveId: 'a1', disk: deep })
    await assert.rejects(packing, fails('disk', /a path of more than 4095 bytes/))
  })

  test('`extentOf` counts the directories in a disk’s `upper` and `etc`, even if a name has a newline', async () => {
    const disk = diskIn(scratch.make('counted'))
    const made = ['upper/a/b', 'upper/c\nd 1', 'etc']
    for (const name of made) mkdirSync(join(scratch.at('counted'), name), { recursive: true })
    writeFileSync(join(disk.etc, 'image'), 'x')
    assert.equal((await extentOf(disk)).directories, 5)
  })

  test('packing a disk that does not exist is an error, and writes nothing to the store', async () => {
    const packing = packDisk({
      store: storeAt('none'),
      sandboxId,
      archiveId: 'a1',
      disk: diskIn(scratch.at('none-disk')),
    })
    await assert.rejects(packing, fails('disk', /cannot be read/))
    assert.ok(!existsSync(scratch.at('none')))
  })
})
