// Tests pause, resize, archive and snapshot by HTTP on a real server.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { boxOf, createBox, until } from './box.ts'
import { type Platform, platform } from './harness.ts'

suite('pause, resize, archive and snapshot', () => {
  let alcove: Platform
  before(async () => {
    alcove = await platform()
  })
  after(async () => {
    await alcove?.[Symbol.asyncDispose]()
  })

  const recordOf = async (id: string) => (await alcove.api('GET', `/sandbox/${id}`)).body
  const asks = async (id: string, verb: string, body?: unknown) => {
    const answer = await alcove.api('POST', `/sandbox/${id}/${verb}`, body)
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
  }
  const becomes = (id: string, state: string) =>
    until(`${id} is ${state}`, async () => (await recordOf(id))['state'] === state, 60)

  test('a paused sandbox’s toolbox answers 409; the sandbox’s processes go on after the next start', async () => {
    await using box = await createBox(alcove)
    await box.run(
      'setsid sh -c "i=0; while :; do i=\\$((i+1)); echo \\$i > /dev/shm/n; done" >/dev/null 2>&1 & sleep 0.2',
    )
    await asks(box.id, 'pause')
    await becomes(box.id, 'paused')
    const answer = await box.toolbox('POST', '/process/execute', { command: 'true' })
    assert.equal(answer.status, 409)
    assert.match(String(answer.body['message']), /paused/)
    await asks(box.id, 'start')
    await becomes(box.id, 'started')
    // The counting loop empties the file before it writes the next number. So read until there is a number.
    const count = async () => Number(await box.run('n=; while [ -z "$n" ]; do read n < /dev/shm/n; done; echo $n'))
    const from = await count()
    await until('it counts on', async () => (await count()) > from)
  })

  test('a running sandbox is resized immediately; a resize below the memory that it uses answers 409', async () => {
    await using box = await createBox(alcove)
    await asks(box.id, 'resize', { cpu: 2, memory: 2 })
    await becomes(box.id, 'started')
    const limit = 'cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null; true'
    assert.equal(await box.run(limit), String(2 * 1024 ** 3))
    const hold = "python3 -c \"import time; held = bytearray(1200 << 20); open('held', 'w'); time.sleep(1000)\""
    await box.run(`setsid ${hold} >/dev/null 2>&1 & while [ ! -e held ]; do sleep 0.1; done`)
    const refused = await alcove.api('POST', `/sandbox/${box.id}/resize`, { memory: 1 })
    assert.equal(refused.status, 409)
    assert.match(String(refused.body['message']), /uses 1\.\d* GiB of memory, so it cannot be given 1 GiB/)
    const record = await recordOf(box.id)
    assert.deepEqual([record['state'], record['memory']], ['started', 2])
    assert.equal(await box.run(limit), String(2 * 1024 ** 3))
  })

  test('a sandbox can be started while it is being archived, and then has all its files', async () => {
    await using box = await createBox(alcove)
    await box.run('echo kept > file; head -c 40M /dev/urandom > big; sha256sum big > sum')
    for (let round = 0; round < 2; round++) {
      await asks(box.id, 'archive')
      await asks(box.id, 'start')
      await becomes(box.id, 'started')
      assert.equal(await box.run('cat file; sha256sum -c sum'), 'kept\nbig: OK')
    }
  })

  test('an archived sandbox leaves nothing on its host, and has all its files after a start', async () => {
    await using box = await createBox(alcove)
    await box.run('echo kept > file; head -c 5M /dev/urandom > big')
    const before = await box.run('sha256sum file big; cat /etc/machine-id')
    await asks(box.id, 'archive')
    await becomes(box.id, 'archived')
    const left = (await alcove.leftovers()).filter((line) => line.includes(box.id))
    assert.deepEqual(
      left.filter((line) => !line.endsWith(`/runner/sandboxes/${box.id}`)),
      [],
      'nothing but what is written down of it',
    )
    await asks(box.id, 'start')
    await becomes(box.id, 'started')
    assert.equal(await box.run('sha256sum file big; cat /etc/machine-id'), before)
  })

  test('a snapshot has the sandbox’s disk as it was when the snapshot was made, without later writes', async () => {
    await using box = await createBox(alcove)
    await box.run('echo then > file')
    await asks(box.id, 'snapshot', { name: 'as-it-was' })
    await becomes(box.id, 'started')
    const { size, ref } = (await alcove.api('GET', '/snapshots/as-it-was')).body
    assert.ok(Number(size) > 0.1, `${size} GiB, with the image below it`)
    assert.match(String(ref), /^snap-/)
    await box.run('echo later > file')
    const made = await alcove.api('POST', '/sandbox', { snapshot: 'as-it-was' })
    assert.equal(made.status, 200, JSON.stringify(made.body))
    await using other = boxOf(alcove, made.body)
    assert.equal(await other.run('cat file'), 'then')
    assert.notEqual(await other.run('cat /etc/machine-id'), await box.run('cat /etc/machine-id'))
  })
})
