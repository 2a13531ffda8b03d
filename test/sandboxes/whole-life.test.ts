// Tests the whole life of a sandbox with the public SDK. At the end, a hundred callers use conflicting verbs at once.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { Daytona, Sandbox } from '@daytona/sdk'
import { until } from './box.ts'
import { type Platform, platform } from './harness.ts'
import { connectTo } from './sdk-client.ts'

suite('the whole life of a sandbox by the SDK', () => {
  let alcove: Platform
  let daytona: Daytona
  before(async () => {
    alcove = await platform()
    daytona = connectTo(alcove)
  })
  after(async () => {
    await daytona?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  const run = async (sandbox: Sandbox, command: string): Promise<string> => {
    const { exitCode, result } = await sandbox.process.executeCommand(command, undefined, undefined, 60)
    assert.equal(exitCode, 0, `${command}: ${result}`)
    return result.trim()
  }

  const isGone = async (id: string) => (await alcove.api('GET', `/sandbox/${id}`)).status === 404

  test('a sandbox keeps its processes while it is paused, started again and resized', async () => {
    const sandbox = await daytona.create()
    await run(sandbox, 'setsid sleep 6161 >/dev/null 2>&1 & echo $! > pid')
    await sandbox.pause()
    assert.equal(sandbox.state, 'paused')
    await assert.rejects(sandbox.process.executeCommand('true'), /paused/)
    await sandbox.start()
    assert.equal(sandbox.state, 'started')
    await run(sandbox, 'kill -0 $(cat pid)')
    await sandbox.resize({ cpu: 2, memory: 2, disk: 4 })
    await sandbox.refreshData()
    assert.deepEqual([sandbox.state, sandbox.cpu, sandbox.memory, sandbox.disk], ['started', 2, 2, 4])
    await run(sandbox, 'kill -0 $(cat pid)')
    await assert.rejects(sandbox.resize({ disk: 1 }), /shrink/)
    await sandbox.delete(60, true)
  })

  test('forks have their parent’s files but machine ids of their own, and the tree of forks can be listed', async () => {
    const parent = await daytona.create({ labels: { family: 'fork' }, envVars: { COLOUR: 'green' } })
    await run(parent, 'echo before > file; mkdir -p deep/er; echo x > deep/er/file')
    const child = await parent.fork({ name: `child-${parent.id}` })
    assert.deepEqual([child.state, parent.state], ['started', 'started'])
    assert.equal(await run(child, 'cat file deep/er/file; echo $COLOUR'), 'before\nx\ngreen')
    await run(child, 'echo child > file')
    await run(parent, 'echo parent > file')
    assert.deepEqual([await run(child, 'cat file'), await run(parent, 'cat file')], ['child', 'parent'])
    for (const command of ['hostname', 'cat /etc/machine-id', 'cat /proc/sys/kernel/random/uuid']) {
      assert.notEqual(await run(child, command), await run(parent, command), command)
    }
    const grandchild = await child.fork()
    assert.equal(await run(grandchild, 'cat file'), 'child')
    const idsAt = async (path: string) => {
      const { body } = await alcove.api('GET', `/sandbox/${path}`)
      return (body as unknown as { id: string }[]).map(({ id }) => id)
    }
    assert.deepEqual(await idsAt(`${grandchild.id}/ancestors`), [parent.id, child.id])
    assert.deepEqual(await idsAt(`${parent.id}/forks`), [child.id])
    // Delete the parent. The forks of the parent stay.
    await parent.delete(60, true)
    assert.equal(await run(child, 'cat file'), 'child')
    assert.equal((await alcove.api('GET', `/sandbox/${child.id}/parent`)).status, 404)
    await child.stop()
    await child.start()
    assert.equal(await run(child, 'cat file'), 'child')
    await Promise.all([child.delete(60, true), grandchild.delete(60, true)])
  })

  test('a snapshot of a running or paused sandbox can start sandboxes even after its source is deleted', async () => {
    const sandbox = await daytona.create()
    await run(sandbox, 'echo then > file')
    const name = `whole-life-${sandbox.id}`
    await sandbox.createSnapshot(name)
    assert.equal(sandbox.state, 'started')
    await run(sandbox, 'echo later > file')
    await sandbox.pause()
    await sandbox.createSnapshot(`${name}-paused`)
    assert.equal(sandbox.state, 'paused')
    await sandbox.delete(60, true)
    const [first, second] = await Promise.all([
      daytona.create({ snapshot: name }),
      daytona.create({ snapshot: `${name}-paused` }),
    ])
    assert.deepEqual([await run(first, 'cat file'), await run(second, 'cat file')], ['then', 'later'])
    await Promise.all([first.delete(60, true), second.delete(60, true)])
    for (const each of [name, `${name}-paused`]) await daytona.snapshot.delete(await daytona.snapshot.get(each))
  })

  test('a sandbox has every file again after an archive and a restore', async () => {
    const sandbox = await daytona.create()
    await run(sandbox, 'head -c 3M /dev/urandom > big; ln -s big link; sha256sum big > sum')
    await sandbox.archive()
    await until('it is archived', async () => {
      await sandbox.refreshData()
      assert.equal(sandbox.errorReason ?? '', '')
      return sandbox.state === 'archived'
    })
    await sandbox.start(120)
    assert.equal(await run(sandbox, 'sha256sum -c sum && readlink link'), 'big: OK\nbig')
    await sandbox.archive()
    await sandbox.delete(60, true)
  })

  test('if 100 calls with conflicting verbs for a few sandboxes run at once, no call answers 500 or hangs', async () => {
    const { id } = await daytona.create()
    let state = 7
    const random = (below: number) => {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31
      return Math.floor((state / 2 ** 31) * below)
    }
    const verbs = [
      'start',
      'stop',
      'stop?force=true',
      'pause',
      'start',
      'resize',
      'fork',
      'snapshot',
      'archive',
      'recover',
      'delete',
    ]
    /** The calls never delete the first sandbox. They delete some of its forks while some calls still use these forks. */
    const family = [id]
    const deleted = new Set<string>()
    const calls = Array.from({ length: 100 }, async (_, n) => {
      // Start ten calls together every 150 ms, so that a call often names a sandbox for which a different verb is in progress.
      await new Promise((resolve) => setTimeout(resolve, Math.floor(n / 10) * 150))
      const verb = verbs[random(verbs.length)]!
      const target = verb === 'delete' ? family.at(-1)! : family[random(2) * random(family.length)]!
      const body = { name: `opposite-${id}-${n}`, memory: 1 + random(3) }
      if (verb === 'delete' && target === id) return
      if (verb === 'delete') deleted.add(target)
      const answer =
        verb === 'delete'
          ? await alcove.api('DELETE', `/sandbox/${target}`)
          : await alcove.api('POST', `/sandbox/${target}/${verb}`, verb === 'fork' ? {} : body)
      const { status } = answer
      const allowed = [200, 400, 409, 503, ...(deleted.has(target) ? [404] : [])]
      assert.ok(allowed.includes(status), `${verb}: ${status} ${JSON.stringify(answer.body)}`)
      if (verb === 'fork' && status === 200) family.push(String(answer.body['id']))
    })
    await Promise.all(calls)
    const forks = family.filter((each) => each !== id && !deleted.has(each))
    const settled = ['started', 'stopped', 'paused', 'archived', 'error']
    for (const each of [id, ...forks]) {
      await until(
        `${each} comes to rest`,
        async () => settled.includes(String((await alcove.api('GET', `/sandbox/${each}`)).body['state'])),
        120,
      )
    }
    for (const each of [id, ...forks]) assert.equal((await alcove.api('DELETE', `/sandbox/${each}`)).status, 200)
    for (const each of [id, ...forks]) await until(`${each} is gone`, () => isGone(each), 60)
    await until('the host holds nothing of them', async () => {
      const left = await alcove.leftovers()
      return !family.some((each) => left.some((line) => line.includes(each)))
    })
    const { body } = await alcove.api('GET', `/snapshots?sourceSandboxId=${id}&limit=200`)
    for (const { name, state } of body['items'] as { name: string; state: string }[]) {
      assert.ok(['active', 'error'].includes(state), `${name} is ${state}`)
      assert.equal((await alcove.api('DELETE', `/snapshots/${encodeURIComponent(name)}`)).status, 200)
    }
  })
})
