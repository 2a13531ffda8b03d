// The life of a real sandbox through HTTP: what each verb (stop, start, delete, …) does to the sandbox's files and processes.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { createBox, until } from './box.ts'
import { type Platform, platform } from './harness.ts'

suite('the life of a sandbox', () => {
  let alcove: Platform
  before(async () => {
    alcove = await platform()
  })
  after(async () => {
    await alcove?.[Symbol.asyncDispose]()
  })

  const stateOf = async (id: string) => (await alcove.api('GET', `/sandbox/${id}`)).body['state']
  const becomes = (id: string, state: string) =>
    until(`${id} is ${state}`, async () => (await stateOf(id)) === state, 60)

  test('a stop ends a sandbox’s processes and keeps its files; a start runs the sandbox again', async () => {
    await using box = await createBox(alcove)
    await box.run('echo kept > file; setsid sleep 5151 >/dev/null 2>&1 &')
    assert.equal((await alcove.api('POST', `/sandbox/${box.id}/stop`)).status, 200)
    await becomes(box.id, 'stopped')
    assert.equal(await alcove.hostPid('sleep 5151'), undefined)
    assert.equal((await alcove.api('POST', `/sandbox/${box.id}/stop`)).body['state'], 'stopped')
    assert.equal((await alcove.api('POST', `/sandbox/${box.id}/start`)).status, 200)
    await becomes(box.id, 'started')
    assert.equal(await box.run('cat file'), 'kept')
    assert.equal((await alcove.api('POST', `/sandbox/${box.id}/start`)).body['state'], 'started')
  })

  test('stop sends SIGTERM to the processes before SIGKILL; a forced stop sends only SIGKILL', async () => {
    await using box = await createBox(alcove)
    const program = 'trap "echo asked > ~/asked; exit 0" TERM; touch ~/traps; while :; do sleep 0.1; done'
    const trap = `rm -f ~/traps; setsid bash -c '${program}' >/dev/null 2>&1 & until [ -e ~/traps ]; do sleep 0.05; done`
    await box.run(trap)
    await alcove.api('POST', `/sandbox/${box.id}/stop`)
    await becomes(box.id, 'stopped')
    await alcove.api('POST', `/sandbox/${box.id}/start`)
    await becomes(box.id, 'started')
    assert.equal(await box.run('cat ~/asked; rm ~/asked'), 'asked')
    await box.run(trap)
    await alcove.api('POST', `/sandbox/${box.id}/stop?force=true`)
    await becomes(box.id, 'stopped')
    await alcove.api('POST', `/sandbox/${box.id}/start`)
    await becomes(box.id, 'started')
    assert.notEqual((await box.try('cat ~/asked')).exitCode, 0)
  })

  test('a deleted sandbox answers 404, its name can be used again, and nothing of it is left on the host', async () => {
    const box = await createBox(alcove, { name: 'short-lived' })
    const deleted = await alcove.api('DELETE', `/sandbox/${box.id}`)
    assert.equal(deleted.status, 200)
    await until('it is gone', async () => (await alcove.api('GET', `/sandbox/${box.id}`)).status === 404)
    assert.equal((await alcove.api('DELETE', `/sandbox/${box.id}`)).status, 404)
    await using again = await createBox(alcove, { name: 'short-lived' })
    assert.notEqual(again.id, box.id)
    await until(
      'the host holds nothing of it',
      async () => !(await alcove.leftovers()).some((line) => line.includes(box.id)),
    )
  })

  test('an ephemeral sandbox is deleted when it stops', async () => {
    const box = await createBox(alcove, { autoDeleteInterval: 0 })
    await alcove.api('POST', `/sandbox/${box.id}/stop`)
    await until('it is gone', async () => (await alcove.api('GET', `/sandbox/${box.id}`)).status === 404)
  })

  test('two sandboxes have different hostnames, machine ids and addresses', async () => {
    await using one = await createBox(alcove)
    await using two = await createBox(alcove)
    const facts = 'hostname; cat /etc/machine-id; cat /proc/sys/kernel/random/uuid; grep -c . /proc/net/dev'
    const [a, b] = [(await one.run(facts)).split('\n'), (await two.run(facts)).split('\n')]
    for (const line of [0, 1, 2]) assert.notEqual(a[line], b[line])
  })

  test('a sandbox has the environment, labels and user that its create call names', async () => {
    await using box = await createBox(alcove, { env: { COLOUR: 'green' }, labels: { team: 'a' }, user: 'root' })
    assert.equal(await box.run('echo $COLOUR; id -un'), 'green\nroot')
    assert.deepEqual(box.record['labels'], { team: 'a' })
  })

  test('ten parallel creates make ten different sandboxes', async () => {
    const made = await Promise.all(Array.from({ length: 10 }, () => createBox(alcove)))
    assert.equal(new Set(made.map(({ id }) => id)).size, 10)
    await Promise.all(made.map(async (box, index) => assert.equal(await box.run(`echo ${index}`), String(index))))
    await Promise.all(made.map((box) => box[Symbol.asyncDispose]()))
  })
})
