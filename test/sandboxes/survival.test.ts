// Tests that any program may be killed at any instruction: sandboxes keep running, answer again, and can be deleted completely.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
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
    alcove = await platform({ own: true, image: 'small' })
    box = await createBox(alcove, { labels: { keep: 'me' } })
    await box.run(counter)
    await until('the counter runs', async () => (await box.try('cat /tmp/counter')).exitCode === 0)
    shellPid = await box.run('pgrep -f "while :" | head -1')
  })
  after(async () => {
    await alcove?.[Symbol.asyncDispose]()
  })

  /** Runs a command inside and returns its output; `undefined` while the platform does not answer. */
  const ask = async (command: string): Promise<string | undefined> => {
    const reply = await boxOf(alcove, box.record)
      .toolbox('POST', '/process/execute', { command })
      .catch(() => undefined)
    return reply?.status === 200 ? String(reply.body['result']).trim() : undefined
  }

  /** Checks that the counter continues in the same process that was started before the kill, and that the record agrees. */
  const countsOn = async (before: number) => {
    await until(
      'the sandbox answers, and the counter moved on',
      async () => Number(await ask('cat /tmp/counter')) > before,
      60,
    )
    await until('it is the same process', async () => (await ask('pgrep -f "while :" | head -1')) === shellPid)
    await until(
      'the API knows it as started',
      async () => {
        const reply = await alcove.api('GET', `/sandbox/${box.id}`).catch(() => undefined)
        if (reply?.status !== 200) return false
        assert.deepEqual([reply.body['state'], reply.body['labels']], ['started', { keep: 'me' }])
        return true
      },
      60,
    )
  }

  for (const program of ['control', 'gate', 'runner', 'postgres'] as const) {
    test(`if ${program} is killed, it is restarted, and a sandbox’s processes continue`, async () => {
      const before = Number(await ask('cat /tmp/counter'))
      assert.ok(before > 0)
      await alcove.kill(program)
      await countsOn(before)
    })
  }

  test('if `up` is killed, the next `up` serves the same sandbox, and its processes continue', async () => {
    const before = Number(await ask('cat /tmp/counter'))
    assert.ok(before > 0)
    await alcove.kill('up')
    await alcove.start()
    await countsOn(before)
  })

  test('if all programs are killed at the same time, the next `up` serves the same sandbox', async () => {
    const before = Number(await ask('cat /tmp/counter'))
    assert.ok(before > 0)
    await alcove.killAll()
    await alcove.start()
    await countsOn(before)
  })

  test('an answered change of variables stays in effect, even if any program is killed directly afterwards', async () => {
    for (const [n, program] of (['runner', 'control', 'gate'] as const).entries()) {
      const change = { set: { KEPT: String(n) }, unset: ['IS_SANDBOX'] }
      // While the program that was killed before starts again, the answer is 503.
      await until('the variables are set', async () => (await box.toolbox('POST', '/env', change)).status === 200)
      await alcove.kill(program)
      let told: string | undefined
      await until(
        'the sandbox answers',
        async () => {
          told = await ask('echo $KEPT $IS_SANDBOX')
          return told !== undefined
        },
        60,
      )
      assert.equal(told, String(n), program)
    }
  })

  test('kills while volumes are made or deleted lose no volume, and leave none that control does not list', async () => {
    const api: Platform['api'] = async (...call) => {
      let answer: Awaited<ReturnType<Platform['api']>> | undefined
      await until(
        `an answer to ${call[0]} ${call[1]}`,
        async () => {
          answer = await alcove.api(...call).catch(() => undefined)
          return answer !== undefined && answer.status < 500
        },
        60,
      )
      return answer!
    }
    // Retried: a program that was killed a moment ago may not have started again yet.
    const kill = (program: 'control' | 'runner') =>
      until(
        `${program} is killed`,
        () =>
          alcove.kill(program).then(
            () => true,
            () => false,
          ),
        60,
      )
    const volumes = async () => (await api('GET', '/volumes')).body as unknown as { id: string; state: string }[]
    const kept = String((await api('POST', '/volumes', { name: 'kept' })).body['id'])
    await using writer = await createBox(alcove, { volumes: [{ volumeId: kept, mountPath: '/kept' }] })
    await writer.run('echo kept > /kept/file; sync /kept/file')
    for (const [round, program] of (['runner', 'control'] as const).entries()) {
      const name = `killed-${round}`
      const { id } = (await api('POST', '/volumes', { name })).body
      const mounts = [
        { volumeId: name, mountPath: '/data' },
        { volumeId: 'kept', mountPath: '/kept' },
      ]
      const creating = alcove.api('POST', '/sandbox', { name, volumes: mounts }).catch(() => undefined)
      await new Promise((resolve) => setTimeout(resolve, 50 * round))
      await kill(program)
      await creating
      const removing = api('DELETE', `/sandbox/${name}`)
      if (round === 0) await kill('control')
      await removing
      await until('the volume may be deleted', async () => (await api('DELETE', `/volumes/${id}`)).status !== 409, 60)
      if (round === 1) await kill('runner')
    }
    await until('only one volume is left', async () => (await volumes()).length === 1, 90)
    assert.deepEqual(
      (await volumes()).map(({ id, state }) => [id, state]),
      [[kept, 'ready']],
    )
    assert.deepEqual(readdirSync(join(alcove.data, 'runner/pool/volumes')), [kept])
    await until('the writer answers', async () => (await writer.try('true').catch(() => undefined)) !== undefined, 60)
    assert.equal(await writer.run('cat /kept/file'), 'kept')
    await api('DELETE', `/sandbox/${writer.id}`)
    await until(
      'the last volume may be deleted',
      async () => (await api('DELETE', `/volumes/${kept}`)).status === 200,
      60,
    )
    await until('no volume is left', async () => (await volumes()).length === 0, 60)
    assert.deepEqual(readdirSync(join(alcove.data, 'runner/pool/volumes')), [])
  })

  test('a create during which the runner is killed leaves one sandbox in a settled state, or none', async () => {
    const creating = alcove.api('POST', '/sandbox', { name: 'interrupted' }).catch(() => undefined)
    await new Promise((resolve) => setTimeout(resolve, 20))
    await alcove.kill('runner')
    await creating
    await until(
      'it is settled',
      async () => {
        const reply = await alcove.api('GET', '/sandbox/interrupted').catch(() => undefined)
        return reply?.status === 404 || ['started', 'error', 'stopped'].includes(String(reply?.body['state']))
      },
      60,
    )
    const { status, body } = await alcove.api('GET', '/sandbox/interrupted')
    if (status === 200 && body['state'] === 'started') {
      assert.equal(await boxOf(alcove, body).run('echo whole'), 'whole')
    }
    await alcove.api('DELETE', '/sandbox/interrupted')
  })

  test('after all sandboxes are deleted, nothing is left on the host', async () => {
    const { body } = await alcove.api('GET', '/sandbox')
    for (const { id } of body['items'] as { id: string }[]) await alcove.api('DELETE', `/sandbox/${id}`)
    await until('every sandbox is gone from the host', async () => (await alcove.leftovers()).length === 0, 60)
    assert.deepEqual(await alcove.leftovers(), [])
  })
})
