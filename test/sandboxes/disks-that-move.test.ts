// A sandbox's disk is copied when the sandbox is archived, restored or forked, or when a snapshot of it is made. These tests make
// the copy fail: they fill the runner's pool, or make the archive store unreachable, full or damaged. Some tests move a sandbox to
// a second runner.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { type Box, boxOf, createBox, until } from './box.ts'
import { emptyPool, fillPool, prepareSmallPool } from './full-pool.ts'
import { type Platform, platform } from './harness.ts'
import { type JoinedRunner, joinRunner } from './joined-runner.ts'

const storeIn = (place: string) => ({ ALCOVE_ARCHIVE_STORE: `file://${place}` })

let place: string
let store: string
let alcove: Platform
/**
 * Resolves when the second runner is ready. The first tests do not wait for this promise, because they use only the first runner.
 */
let joining: Promise<JoinedRunner> | undefined
before(async () => {
  place = mkdtempSync(join(tmpdir(), 'alcove-store-'))
  store = join(place, 'store')
  // The pool is small, so that a test can fill it. This overcommit lets control place more sandboxes on the runner than its disk
  // space allows.
  const env = { ...storeIn(store), ALCOVE_OVERCOMMIT: '64,8,10000' }
  alcove = await platform({ own: true, image: 'small', env, prepare: prepareSmallPool })
  // Marks the first runner's default image. In a sandbox that has moved, the file `made-on` shows which runner's image is below the
  // disk.
  writeFileSync(join(alcove.data, 'runner/images/default/rootfs/etc/made-on'), 'local')
  joining = joinRunner(alcove, 'second', storeIn(store))
  joining.catch(() => {})
})
after(async () => {
  try {
    await (await joining?.catch(() => undefined))?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
})

const look = async ({ id }: Box) => (await alcove.api('GET', `/sandbox/${id}`)).body
const becomes = async (box: Box, state: string) =>
  until(
    `${box.id} is ${state}`,
    async () => {
      const seen = await look(box)
      assert.ok(seen['state'] !== 'error' || state === 'error', String(seen['errorReason']))
      return seen['state'] === state
    },
    60,
  )
const ask = async (box: Box, verb: string, state: string) => {
  const { status, body } = await alcove.api('POST', `/sandbox/${box.id}/${verb}`)
  assert.equal(status, 200, JSON.stringify(body))
  await becomes(box, state)
  // After a sandbox has moved, the gate may send calls to the former runner for up to a second.
  if (verb === 'start') await new Promise((resolve) => setTimeout(resolve, 1100))
}

/** Lists the complete files in the store. A file that is still being written has no name yet. */
const filesInStore = () =>
  (existsSync(store) ? execFileSync('find', [store, '-type', 'f'], { encoding: 'utf8' }).split('\n') : [])
    // The store keeps a runner's default image (`base-…`) as long as the runner has this image.
    .filter((path) => path !== '' && !path.includes('/images/base-'))
const isEmptyStore = () => filesInStore().length === 0

const remove = async (...boxes: Box[]) => {
  for (const { id } of boxes) assert.equal((await alcove.api('DELETE', `/sandbox/${id}`)).status, 200)
  await until('nothing is left of them', async () => {
    const left = await alcove.leftovers()
    return !boxes.some(({ id }) => left.some((line) => line.includes(id)))
  })
}

const createWithFile = async (): Promise<Box> => {
  const box = await createBox(alcove, { autoStopInterval: 0 })
  await box.run('head -c 5M /dev/urandom > big; sha256sum big > sum; ln -s big link')
  return box
}
const hasItsFile = async (box: Box) => {
  assert.equal(await boxOf(alcove, await look(box)).run('sha256sum -c sum && readlink link'), 'big: OK\nbig')
}

/**
 * Calls a verb that the API accepts but that fails on the runner. When the sandbox is back in the state `rests`, returns the reason
 * of the failure.
 */
const askInVain = async (box: Box, verb: string, rests: string) => {
  assert.equal((await alcove.api('POST', `/sandbox/${box.id}/${verb}`)).status, 200)
  await until(
    `${box.id} rests`,
    async () => {
      const { state, errorReason } = await look(box)
      return state === rests && errorReason !== undefined
    },
    60,
  )
  return String((await look(box))['errorReason'])
}

suite('an archive store that fails', () => {
  let box: Box
  before(async () => {
    box = await createWithFile()
  })
  after(async () => {
    await remove(box)
    assert.ok(isEmptyStore(), 'nothing is left in the store')
  })

  const whileAway = async (work: () => Promise<void>) => {
    mkdirSync(store, { recursive: true })
    renameSync(store, `${store}.away`)
    writeFileSync(store, 'no directory')
    try {
      await work()
    } finally {
      rmSync(store)
      renameSync(`${store}.away`, store)
    }
  }

  test('if the archive store is unreachable, an archive fails with the reason, and the sandbox stays stopped', async () => {
    await whileAway(async () =>
      assert.match(await askInVain(box, 'archive', 'stopped'), /archive store .* cannot be used/),
    )
    await ask(box, 'start', 'started')
    assert.equal((await look(box))['errorReason'], undefined)
    await hasItsFile(box)
  })

  test('if the archive store is full, an archive fails with that reason; with free space, archives succeed', async () => {
    mkdirSync(store, { recursive: true })
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', store])
    try {
      assert.match(await askInVain(box, 'archive', 'stopped'), /archive store .* is full/)
    } finally {
      execFileSync('umount', [store])
    }
    await ask(box, 'archive', 'archived')
  })

  test('a sandbox whose restore fails stays archived, and starts when the archive store can be reached again', async () => {
    await whileAway(async () =>
      assert.match(await askInVain(box, 'start', 'archived'), /archive store .* cannot be used/),
    )
    assert.ok(
      !(await alcove.leftovers()).some((line) => /disks/.test(line) && line.includes(box.id)),
      'nothing half-made',
    )
    await ask(box, 'start', 'started')
    await hasItsFile(box)
    await ask(box, 'archive', 'archived')
  })

  test('a sandbox whose archive is damaged stays archived, and starts after the archive is repaired', async () => {
    const chunk = filesInStore().find((path) => path.includes('/chunks/')) ?? ''
    const whole = readFileSync(chunk)
    const damaged = Buffer.from(whole)
    // The last chunk of a disk may have only a few bytes.
    const middle = damaged.length >> 1
    damaged.writeUInt8(damaged.readUInt8(middle) ^ 1, middle)
    writeFileSync(chunk, damaged)
    assert.match(await askInVain(box, 'start', 'archived'), /damaged/)
    assert.ok(
      !(await alcove.leftovers()).some((line) => /disks/.test(line) && line.includes(box.id)),
      'nothing half-made',
    )
    writeFileSync(chunk, whole)
    await ask(box, 'start', 'started')
    await hasItsFile(box)
  })
})

suite('a storage pool that is full', () => {
  const templates = () => readdirSync(join(alcove.data, 'runner/pool/templates'))
  const disks = () => readdirSync(join(alcove.data, 'runner/pool/disks'))

  test('in a full pool, forks and snapshots fail and leave nothing; with free space again, both succeed', async () => {
    const parent = await createWithFile()
    fillPool(alcove.data)
    const forked = await alcove.api('POST', `/sandbox/${parent.id}/fork`, {})
    assert.equal(forked.status, 200)
    const child = boxOf(alcove, forked.body)
    await until('the fork has failed', async () => (await look(child))['state'] === 'error', 60)
    const { errorReason, recoverable } = await look(child)
    assert.match(String(errorReason), /No space left/)
    assert.equal(recoverable, true)
    const name = `full-${parent.id}`
    assert.equal((await alcove.api('POST', `/sandbox/${parent.id}/snapshot`, { name })).status, 200)
    await becomes(parent, 'started')
    const snapshot = (await alcove.api('GET', `/snapshots/${name}`)).body
    assert.equal(snapshot['state'], 'error')
    assert.match(String(snapshot['errorReason']), /No space left/)
    assert.deepEqual(templates(), [])
    assert.ok(!disks().some((disk) => disk.includes(child.id)), 'nothing half-made')
    await hasItsFile(parent)

    emptyPool(alcove.data)
    await ask(child, 'recover', 'started')
    await hasItsFile(child)
    assert.equal((await alcove.api('DELETE', `/snapshots/${name}`)).status, 200)
    assert.equal((await alcove.api('POST', `/sandbox/${parent.id}/snapshot`, { name })).status, 200)
    await becomes(parent, 'started')
    assert.equal((await alcove.api('GET', `/snapshots/${name}`)).body['state'], 'active')
    await alcove.api('DELETE', `/snapshots/${name}`)
    await remove(parent, child)
  })

  test('in a full pool, an archive succeeds, and a restore fails with the reason until there is space', async () => {
    const box = await createWithFile()
    fillPool(alcove.data)
    try {
      await ask(box, 'archive', 'archived')
      fillPool(alcove.data)
      assert.match(await askInVain(box, 'start', 'archived'), /no room|No space left/i)
      assert.ok(!disks().some((disk) => disk.includes(box.id)), 'nothing half-made')
    } finally {
      emptyPool(alcove.data)
    }
    await ask(box, 'start', 'started')
    await hasItsFile(box)
    await remove(box)
    assert.ok(isEmptyStore(), 'nothing is left in the store')
  })
})

suite('sandboxes that move between two runners', () => {
  let second: JoinedRunner
  before(async () => {
    second = await joining!
    await drain('second', false)
  })

  const drain = async (id: string, isDrained: boolean) => {
    assert.equal((await alcove.api('PATCH', `/runners/${id}/scheduling`, { unschedulable: isDrained })).status, 200)
  }
  const createOn = async (runnerId: string): Promise<Box> => {
    const other = runnerId === 'local' ? 'second' : 'local'
    await drain(other, true)
    const box = await createBox(alcove, { autoStopInterval: 0 }).finally(() => drain(other, false))
    assert.equal(box.record['runnerId'], runnerId)
    return box
  }

  test('new sandboxes are spread over two runners; a deleted sandbox leaves nothing on its host', async () => {
    const boxes = await Promise.all([1, 2, 3, 4].map(() => createBox(alcove)))
    assert.deepEqual([...new Set(boxes.map(({ record }) => record['runnerId']))].sort(), ['local', 'second'])
    for (const box of boxes) assert.equal(await box.run('echo here'), 'here')
    for (const { id } of boxes) assert.equal((await alcove.api('DELETE', `/sandbox/${id}`)).status, 200)
    await until('both hosts hold nothing of them', async () => {
      const left = [...(await alcove.leftovers()), ...second.leftovers()]
      return !boxes.some(({ id }) => left.some((line) => line.includes(id)))
    })
  })

  test('a sandbox that was archived on one runner starts on another runner if the first runner is drained', async () => {
    const box = await createOn('local')
    await box.run('head -c 5M /dev/urandom > big; sha256sum big > sum; rm -rf ~/.cache; ln -s big link')
    await ask(box, 'archive', 'archived')
    await drain('local', true)
    await ask(box, 'start', 'started')
    assert.equal((await look(box))['runnerId'], 'second')
    const moved = boxOf(alcove, await look(box))
    assert.equal(await moved.run('sha256sum -c sum && readlink link'), 'big: OK\nbig')
    assert.equal(await moved.run('cat /etc/made-on'), 'local')
    const own = await createOn('second')
    assert.notEqual(await own.run('cat /etc/made-on || echo none'), 'local')
    await remove(own)
    await drain('local', true)
    // The sandbox has moved to the second runner, where stop, start and archive must succeed.
    await ask(box, 'stop', 'stopped')
    await ask(box, 'start', 'started')
    await ask(box, 'archive', 'archived')
    await drain('local', false)
    await alcove.api('DELETE', `/sandbox/${box.id}`)
    // The first runner removes the directory `sandboxes/ID` only a day after the sandbox has moved. So ignore this directory.
    const journal = `path ${alcove.data}/runner/sandboxes/${box.id}`
    await until('nothing is left of it', async () => {
      const left = [...(await alcove.leftovers()), ...second.leftovers()].filter((line) => line.includes(box.id))
      return left.every((line) => line === journal)
    })
    assert.ok(isEmptyStore(), 'nothing is left in the store')
  })

  test('a second runner can start sandboxes from a snapshot even if the runner with the snapshot was killed', async () => {
    const source = await createOn('local')
    await source.run('head -c 48M /dev/urandom > big; sha256sum big > sum; echo kept > file')
    const snapshot = `two-runners-${source.id}`
    await alcove.api('POST', `/sandbox/${source.id}/snapshot`, { name: snapshot })
    await becomes(source, 'started')
    await alcove.kill('runner')
    const box = await createBox(alcove, { snapshot, autoStopInterval: 0 })
    await ask(box, 'archive', 'archived')
    await drain('local', true)
    await until(
      'another runner has the snapshot',
      async () =>
        (await alcove.api('POST', '/sandbox', { snapshot, name: 'elsewhere', autoStopInterval: 0 })).status === 200,
      60,
    )
    const elsewhere = boxOf(alcove, (await alcove.api('GET', '/sandbox/elsewhere')).body as never)
    await becomes(elsewhere, 'started')
    assert.equal((await look(elsewhere))['runnerId'], 'second')
    assert.equal(await elsewhere.run('sha256sum -c sum && cat file /etc/made-on'), 'big: OK\nkept\nlocal')
    await ask(box, 'start', 'started')
    assert.equal((await look(box))['runnerId'], 'second')
    assert.equal(await boxOf(alcove, await look(box)).run('cat file'), 'kept')
    await drain('local', false)
    for (const { id } of [box, source, elsewhere]) await alcove.api('DELETE', `/sandbox/${id}`)
    await alcove.api('DELETE', `/snapshots/${snapshot}`)
    await until('no image is in the store', async () => !filesInStore().some((path) => path.includes('/images/')), 60)
  })

  test('a drain with --move restarts running sandboxes on another runner and archives stopped sandboxes', async () => {
    const ran = await createOn('second')
    await ran.run('head -c 5M /dev/urandom > big; sha256sum big > sum; ln -s big link')
    const stopped = await createOn('second')
    await ask(stopped, 'stop', 'stopped')
    const asked = { unschedulable: true, move: true }
    assert.equal((await alcove.api('PATCH', '/runners/second/scheduling', asked)).status, 200)
    const progress = async () => (await alcove.api('GET', '/runners/second/emptying')).body
    await until('the runner is empty', async () => (await progress())['left'] === 0, 60)
    await becomes(ran, 'started')
    assert.equal((await look(ran))['runnerId'], 'local')
    assert.equal((await look(stopped))['state'], 'archived')
    await new Promise((resolve) => setTimeout(resolve, 1100))
    await hasItsFile(ran)
    await drain('second', false)
    for (const { id } of [ran, stopped]) assert.equal((await alcove.api('DELETE', `/sandbox/${id}`)).status, 200)
  })

  test('a sandbox on a runner that the operator gave up keeps running, and is usable when the runner is back', async () => {
    const box = await createOn('second')
    const { result } = (
      await box.toolbox('POST', '/process/execute', {
        command: 'cat /proc/sys/kernel/random/boot_id; stat -c %Z /proc/1',
      })
    ).body
    await second.stop()
    const lose = async () => (await alcove.api('POST', '/runners/second/lost')).status
    await until('the runner is silent, and given up', async () => (await lose()) === 200, 60)
    const lost = await look(box)
    assert.deepEqual([lost['state'], lost['recoverable']], ['error', true])
    assert.match(String(lost['errorReason']), /^Its host "second" has not answered since .* and is given up/)
    assert.equal((await alcove.api('POST', `/sandbox/${box.id}/recover`)).status, 409)
    await second.start()
    await until('the sandbox is back', async () => (await look(box))['state'] === 'started', 60)
    const again = (
      await box.toolbox('POST', '/process/execute', {
        command: 'cat /proc/sys/kernel/random/boot_id; stat -c %Z /proc/1',
      })
    ).body
    assert.equal(again['result'], result)
    assert.equal((await alcove.api('DELETE', `/sandbox/${box.id}`)).status, 200)
  })

  test('a stopped sandbox with a save starts with its files on another runner after its own runner is lost', async () => {
    const saveStopped = (...options: string[]) =>
      execFileSync(resolve('alcove'), ['region', 'save-stopped', 'local', '--data', alcove.data, ...options], {
        encoding: 'utf8',
      })
    assert.equal(saveStopped(), 'Stopped sandboxes of local are saved in the archive store.\n')
    const box = await createOn('second')
    await box.run('head -c 30M /dev/urandom > big; sha256sum big > sum; ln -s big link')
    const isSaved = async (since: unknown) => {
      const { savedAt } = await look(box)
      return savedAt !== undefined && savedAt !== since
    }
    await ask(box, 'stop', 'stopped')
    await until('it is saved', () => isSaved(undefined), 60)
    const { savedAt } = await look(box)
    const chunksOf = () => filesInStore().filter((path) => path.includes(box.id) && path.includes('/chunks/'))
    const chunks = chunksOf()
    await ask(box, 'start', 'started')
    await boxOf(alcove, await look(box)).run('echo little > more')
    await ask(box, 'stop', 'stopped')
    await until('it is saved again', () => isSaved(savedAt), 60)
    assert.ok(chunksOf().some((path) => chunks.includes(path)))
    assert.equal(filesInStore().filter((path) => path.includes(`${box.id}/archives/`)).length, 1)

    await second.stop()
    const lose = async () => (await alcove.api('POST', '/runners/second/lost')).status
    await until('the runner is silent, and given up', async () => (await lose()) === 200, 60)
    assert.equal((await look(box))['state'], 'archived')
    await ask(box, 'start', 'started')
    assert.equal((await look(box))['runnerId'], 'local')
    await hasItsFile(box)
    assert.equal(await boxOf(alcove, await look(box)).run('cat more'), 'little')
    await second.start()
    await until('the lost runner has destroyed its disk', async () =>
      second.leftovers().every((line) => !line.includes(box.id)),
    )
    await ask(box, 'stop', 'stopped')
    await ask(box, 'start', 'started')
    await hasItsFile(box)
    assert.match(saveStopped('--undo'), /are no longer saved/)
    await remove(box)
    assert.ok(!filesInStore().some((path) => path.includes(box.id)), 'nothing of it is left in the store')
  })

  test('after a runner is removed by force, its archived sandboxes start elsewhere; the rest become errors', async () => {
    const archived = await createOn('second')
    await archived.run('echo safe > file')
    await ask(archived, 'archive', 'archived')
    const onDisk = await createOn('second')
    await second.stop()
    const kept = await alcove.api('DELETE', '/runners/second')
    assert.equal(kept.status, 409)
    assert.match(String(kept.body['message']), /1 sandbox/)
    assert.equal((await alcove.api('DELETE', '/runners/second?force=true')).status, 204)
    await ask(archived, 'start', 'started')
    const moved = await look(archived)
    assert.equal(moved['runnerId'], 'local')
    const cat = async () =>
      (await boxOf(alcove, moved).toolbox('POST', '/process/execute', { command: 'cat file' })).body
    // After a sandbox has moved, the gate may send calls to the former runner for up to a second.
    await until('its file is there', async () => (await cat())['result'] === 'safe\n')
    const { state, recoverable, errorReason } = await look(onDisk)
    assert.deepEqual([state, recoverable, errorReason], ['error', false, 'Its runner was taken out of service.'])
    for (const { id } of [archived, onDisk]) {
      assert.equal((await alcove.api('DELETE', `/sandbox/${id}`)).status, 200)
      await until('it is gone', async () => (await alcove.api('GET', `/sandbox/${id}`)).status === 404)
    }
  })
})
