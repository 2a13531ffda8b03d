// Any program may be killed at any instruction: the sandboxes run on, answer again, and leave nothing behind when deleted.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { type Box, boxOf, createBox, until } from './box.ts'
import { type Platform, platform } from './harness.ts'

const counter =
  "setsid bash -c 'n=0; while :; do n=$((n+1)); echo $n > /tmp/counter.new; mv /tmp/counter.new /tmp/counter; sleep 0.05; done' >/dev/null 2>&1 &"

suite('kill -9', () => {
  let alcove: Platform
  let box: Box
  let shellPid: string

  before(async () => {
    alcove = await platform({ own: true })
    box = await createBox(alcove, { labels: { keep: 'me' } })
    await box.run(counter)
    await until('the counter runs', async () => (await box.try('cat /tmp/counter')).exitCode === 0)
    shellPid = await box.run('pgrep -f "while :" | head -1')
  })
  after(async () => {
    await alcove?.[Symbol.asyncDispose]()
  })

  /** The counter moves on, in the very process that was started before anything was killed. */
  const countsOn = async (before: number) => {
    const again = boxOf(alcove, box.record)
    await until(
      'the sandbox answers again',
      async () => {
        const reply = await again
          .toolbox('POST', '/process/execute', { command: 'cat /tmp/counter' })
          .catch(() => undefined)
        return reply?.status === 200
      },
      60,
    )
    await until('the counter moved on', async () => Number(await again.run('cat /tmp/counter')) > before)
    assert.equal(await again.run('pgrep -f "while :" | head -1'), shellPid)
    const { status, body } = await alcove.api('GET', `/sandbox/${box.id}`)
    assert.deepEqual([status, body['state'], body['labels']], [200, 'started', { keep: 'me' }])
  }

  for (const program of ['control', 'proxy', 'runner', 'postgres'] as const) {
    test(`of ${program}: it is restarted and the same sandbox answers`, async () => {
      const before = Number(await box.run('cat /tmp/counter'))
      await alcove.kill(program)
      await countsOn(before)
    })
  }

  test('of up: the next up serves the same sandbox', async () => {
    const before = Number(await box.run('cat /tmp/counter'))
    await alcove.kill('up')
    await alcove.start()
    await countsOn(before)
  })

  test('of everything at once: the next up serves the same sandbox', async () => {
    const before = Number(await box.run('cat /tmp/counter'))
    await alcove.killAll()
    await alcove.start()
    await countsOn(before)
  })

  test('during a create: the sandbox ends in one settled state, with no second one beside it', async () => {
    const creating = alcove.api('POST', '/sandbox', { name: 'interrupted' }).catch(() => undefined)
    await new Promise((resolve) => setTimeout(resolve, 20))
    await alcove.kill('runner')
    await creating
    await until(
      'it is settled',
      async () => {
        const { status, body } = await alcove.api('GET', '/sandbox/interrupted')
        return status === 404 || ['started', 'error', 'stopped'].includes(String(body['state']))
      },
      60,
    )
    const { status, body } = await alcove.api('GET', '/sandbox/interrupted')
    if (status === 200 && body['state'] === 'started') {
      assert.equal(await boxOf(alcove, body).run('echo whole'), 'whole')
    }
    await alcove.api('DELETE', '/sandbox/interrupted')
  })

  test('after deleting them, nothing is left on the host', async () => {
    const { body } = await alcove.api('GET', '/sandbox')
    for (const { id } of body['items'] as { id: string }[]) await alcove.api('DELETE', `/sandbox/${id}`)
    await until('every sandbox is gone from the host', async () => (await alcove.leftovers()).length === 0, 60)
    assert.deepEqual(await alcove.leftovers(), [])
  })
})
