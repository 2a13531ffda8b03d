import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { encodeFrame, FieldWriter, kinds } from './frames.ts'
import { NativeAgent, until } from './testing/native-agent.ts'
import { provoke } from './testing/provoke.ts'
import { queue, read, run, spec, untilSeen } from './testing/session-commands.ts'

suite('many sessions in one agent, and random requests', () => {
  test('a session queues 1000 commands, and refuses further commands', async () => {
    await using native = await NativeAgent.start()
    const { sessions } = native.agent
    await sessions.open(spec('s'))
    await queue(sessions, 's', 'sleep 1000')
    for (let i = 0; i < 1000; i++) await queue(sessions, 's', 'true')
    await assert.rejects(queue(sessions, 's', 'true'), { stage: 'busy', errno: 'ENOBUFS' })
    await sessions.remove('s')
  })

  test('`remove` of a session ends the session’s processes and connections, and frees the session’s id', async () => {
    await using native = await NativeAgent.start()
    const { sessions } = native.agent
    const before = native.openDescriptors
    await sessions.open(spec('s'))
    const bye = `${native.directory}/bye`
    const script = `sleep 1000 & echo $!; setsid sleep 1001 & echo $!; bash -c 'trap "echo bye > ${bye}; exit" TERM; echo $$; echo ready; while :; do sleep 0.1; done'`
    const id = await queue(sessions, 's', script)
    const waiting = await queue(sessions, 's', 'echo never')
    const pids = (await untilSeen(sessions, 's', id, /ready/)).match(/^\d+$/gm)!.map(Number)
    assert.equal(pids.length, 3)
    const [follower, other] = [sessions.attach('s', id, 0), read(sessions.attach('s', waiting, 0))]
    await follower.next()
    await sessions.remove('s')
    assert.ok(pids.every((pid) => !existsSync(`/proc/${pid}`)) && existsSync(bye))
    assert.deepEqual((await read(follower)).end, { type: 'exit', end: { exitCode: 143, signal: 15 } })
    assert.deepEqual((await other).end, { type: 'exit', end: null })
    assert.deepEqual(await sessions.list(), [])
    await native.downTo(before)
    await sessions.open(spec('s'))
  })

  test('`remove` of a session kills processes that ignore SIGTERM; the agent meanwhile answers other calls', async () => {
    await using native = await NativeAgent.start()
    const { sessions } = native.agent
    await sessions.open(spec('deaf'))
    const id = await queue(
      sessions,
      'deaf',
      'trap "" TERM; setsid sh -c \'trap "" TERM; echo $$; echo ready; sleep 1000; sleep 1000\'',
    )
    const [pid] = (await untilSeen(sessions, 'deaf', id, /ready/)).match(/^\d+$/gm)!.map(Number)
    let isGone = false
    const removing = sessions.remove('deaf').then(() => {
      isGone = true
    })
    await until(async () => (await sessions.list()).length === 0, 'the session off the list')
    const shell = await sessions.open(spec('deaf'))
    assert.deepEqual(await run(sessions, 'deaf', 'echo new'), ['new\n', '', 0])
    assert.ok(!isGone && existsSync(`/proc/${pid}`))
    await removing
    // A process of the removed session would be in this list: the agent becomes the parent of orphaned processes.
    const children = readFileSync(`/proc/${native.pid}/task/${native.pid}/children`, 'utf8').trim()
    assert.equal(children, String(shell.pid))
    assert.ok(!existsSync(`/proc/${pid}`))
    assert.deepEqual(await run(sessions, 'deaf', 'echo still'), ['still\n', '', 0])
  })

  test('100 sessions at the same time each have their own variables, and leave no descriptor open', async () => {
    await using native = await NativeAgent.start()
    const { sessions } = native.agent
    const before = native.openDescriptors
    const ids = Array.from({ length: 100 }, (_, i) => `s${i}`)
    await Promise.all(ids.map((id) => sessions.open(spec(id))))
    await Promise.all(ids.map((id) => run(sessions, id, `X=${id}`)))
    assert.deepEqual(
      await Promise.all(ids.map(async (id) => (await run(sessions, id, 'echo $X'))[0])),
      ids.map((id) => `${id}\n`),
    )
    await Promise.all(ids.map((id) => sessions.remove(id)))
    assert.deepEqual(await sessions.list(), [])
    await native.downTo(before)
  })

  test('100 busy session commands and 100 clients that do not read need little memory in the agent', async () => {
    await using native = await NativeAgent.start('release')
    const { sessions } = native.agent
    const ids = Array.from({ length: 100 }, (_, i) => `busy-${i}`)
    const followers = await Promise.all(
      ids.map(async (id) => {
        await sessions.open(spec(id, { ringBytes: 65_536 }))
        const command = await queue(sessions, id, 'head -c 1000000 /dev/zero; exec sleep 1000')
        const follower = sessions.attach(id, command, 0)
        await follower.next()
        return follower
      }),
    )
    const offsets = async (): Promise<number[]> => (await sessions.list()).map(({ commands }) => commands[0]!.endOffset)
    await until(async () => (await offsets()).every((offset) => offset === 1_000_000), 'all output taken')
    assert.ok(native.residentKiB < 20_000, `the agent grew to ${native.residentKiB} KiB`)
    await Promise.all(followers.map((follower) => follower.return()))
    await Promise.all(ids.map((id) => sessions.remove(id)))
  })

  test('a session with more than 4096 commands forgets the oldest commands; ended commands use no descriptor', async () => {
    await using native = await NativeAgent.start('release')
    const { sessions } = native.agent
    await sessions.open(spec('s'))
    await run(sessions, 's', 'echo first')
    const before = native.openDescriptors
    let last = ''
    for (let i = 0; i < 4300; i++) {
      last = await queue(sessions, 's', `echo ${i}`)
      if (i % 500 === 0) await read(sessions.attach('s', last, 0))
    }
    assert.equal((await read(sessions.attach('s', last, 0))).stdout, '4299\n')
    await native.downTo(before)
    const { commands } = await sessions.get('s')
    assert.equal(commands.length, 4096)
    assert.deepEqual((await read(sessions.attach('s', commands[0]!.id, 0))).stdout, '204\n')
    assert.ok(native.residentKiB < 20_000, `the agent grew to ${native.residentKiB} KiB`)
  })

  test('an agent that has ended leaves no named pipe behind', async () => {
    let directory: string | undefined
    {
      await using native = await NativeAgent.start()
      const { sessions } = native.agent
      await sessions.open(spec('s'))
      const id = await queue(sessions, 's', 'echo ready; sleep 1000', true)
      await untilSeen(sessions, 's', id, /ready/)
      directory = native.openPaths.map((path) => /^(.*\/\.alcove-[0-9a-f]{16})\//.exec(path)?.[1]).find(Boolean)
      assert.ok(directory !== undefined && existsSync(directory))
    }
    assert.ok(!existsSync(directory))
  })

  test('random frames about sessions never crash the agent', async () => {
    await using native = await NativeAgent.start()
    const { sessions } = native.agent
    await sessions.open(spec('target'))
    await sessions.exec('target', { id: 'c', text: 'while read l; do echo $l; done', keepInput: true, echoInput: true })
    const ids = fc.constantFrom('target', 'nobody', '')
    const kind = fc.constantFrom(
      ...[kinds.sessionOpen, kinds.sessionList, kinds.sessionExec],
      ...[kinds.commandShow, kinds.commandAttach, kinds.commandInput],
    )
    const request = fc
      .tuple(kind, ids, fc.constantFrom('c', 'd', ''), fc.uint8Array({ maxLength: 40, size: 'max' }))
      .map(([kind, id, command, rest]) =>
        encodeFrame(kind, Buffer.concat([new FieldWriter().string(id).string(command).done(), rest])),
      )
    await fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 3 }), async (sent) => {
        await provoke(native.socketPath, sent, true)
      }),
      { numRuns: 300 },
    )
    assert.equal((await sessions.list())[0]!.id, 'target')
  })
})
