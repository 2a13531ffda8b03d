// Tests the entrypoint of an image in real sandboxes, read through the public SDK.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { type Daytona, Image, type Sandbox } from '@daytona/sdk'
import { TestRegistry } from '#src/runner/images/testing/registry.ts'
import { until } from './box.ts'
import { makeBusyboxImage, noBusybox } from './busybox-image.ts'
import { type Platform, platform } from './harness.ts'
import { connectTo } from './sdk-client.ts'

/** A program that counts, and reports on stderr that it got SIGTERM. */
const counting = `trap 'echo asked >&2; exit 3' TERM; echo $$ > /pid; echo "$OWN $FROM_IMAGE $PWD"; n=0; while :; do n=$((n+1)); echo $n; sleep 0.05; done`

suite('rule 4: the entrypoint session', { skip: noBusybox }, () => {
  let alcove: Platform
  let registry: TestRegistry
  let daytona: Daytona
  let reference: string
  before(async () => {
    registry = await TestRegistry.start()
    reference = registry.put('team/server:1', makeBusyboxImage({ Cmd: ['sh', '-c', counting], WorkingDir: '/etc' }))
    alcove = await platform({ own: true, image: 'small', env: { ALCOVE_PLAIN_REGISTRIES: registry.host } })
    daytona = connectTo(alcove)
  })
  after(async () => {
    await daytona?.[Symbol.asyncDispose]()
    await registry?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  const commandOf = async ({ process }: Sandbox) => {
    const { sessionId, commands } = await process.getEntrypointSession()
    assert.deepEqual([sessionId, commands?.length], ['entrypoint', 1])
    return commands![0]!
  }
  const linesOf = async ({ process }: Sandbox) =>
    ((await process.getEntrypointLogs()).stdout ?? '').split('\n').filter(Boolean)

  test('the entrypoint has a session, its output can be followed, and it survives kill -9 of our programs', async () => {
    await daytona.snapshot.create({ name: 'server', image: reference })
    const sandbox = await daytona.create({ snapshot: 'server', envVars: { OWN: 'mine' } })
    const { id, command, exitCode } = await commandOf(sandbox)
    assert.deepEqual([id, exitCode], ['entrypoint_command', undefined])
    assert.match(command ?? '', /^sh -c 'trap /)
    await until('it counts', async () => (await linesOf(sandbox)).length > 5)
    assert.equal((await linesOf(sandbox))[0], 'mine yes /etc')

    let followed = ''
    const following = sandbox.process.getEntrypointLogs(
      (text) => {
        followed += text
      },
      () => {},
    )
    await until('what comes is followed', () => /\n20\n/.test(followed))
    const before = (await linesOf(sandbox)).length
    await Promise.all([alcove.kill('runner'), alcove.kill('control')])
    // For a call that is already admitted, the gate reads the log from the agent, and needs neither control nor runner.
    await until('it is followed on', () => followed.includes(`\n${before + 20}\n`))
    // The gate may admit calls by a cached answer of control, so call control itself.
    const isControlBack = () => daytona.get(sandbox.id).then(Boolean, () => false)
    await until('control is back', isControlBack, 60)
    await until('it went on', async () => (await linesOf(sandbox).catch(() => [])).length > before + 10, 60)
    const lines = await linesOf(sandbox)
    assert.deepEqual(
      lines.slice(1),
      lines.slice(1).map((_, i) => String(i + 1)),
      'one count, without a gap',
    )
    assert.deepEqual(await commandOf(sandbox), { id, command })
    assert.deepEqual(await sandbox.process.listSessions(), [])

    // The sandbox continues after the end of its entrypoint, and the log can still be read.
    await sandbox.process.executeCommand('kill -TERM $(cat /pid)')
    await until('its end', async () => (await commandOf(sandbox)).exitCode !== undefined)
    await following
    assert.equal((await commandOf(sandbox)).exitCode, 3)
    assert.match((await sandbox.process.getEntrypointLogs()).stderr ?? '', /asked/)
    assert.equal((await sandbox.process.executeCommand('echo here')).result, 'here\n')

    await sandbox.stop()
    await sandbox.start()
    assert.equal((await commandOf(sandbox)).exitCode, undefined, 'it runs again')
    await sandbox.delete()
  })

  test('a definition’s entrypoint is ENTRYPOINT followed by CMD; a snapshot’s own entrypoint replaces both', async () => {
    const image = () => Image.base(reference).entrypoint(['echo', 'of the definition'])
    const sandbox = await daytona.create({ image: image().cmd(['and more']) })
    await until('its end', async () => (await commandOf(sandbox)).exitCode === 0)
    assert.deepEqual(await linesOf(sandbox), ['of the definition and more'])
    await daytona.snapshot.create({ name: 'own', image: image(), entrypoint: ['echo', 'of the snapshot'] })
    const other = await daytona.create({ snapshot: 'own' })
    await until('its end', async () => (await commandOf(other)).exitCode === 0)
    assert.deepEqual(await linesOf(other), ['of the snapshot'])
    await Promise.all([sandbox.delete(), other.delete()])
  })

  test('the entrypoint runs as the USER of its image, with the group that USER names, once at each start', async () => {
    const tells = 'echo started; stat -L -c "%u %g" /proc/self; sleep 1000'
    const config = { Entrypoint: ['sh', '-c', tells], User: '1234:70' }
    const image = registry.put('team/user:1', makeBusyboxImage(config))
    const sandbox = await daytona.create({ image })
    const lines = ['started', '1234 70']
    await until('it has told', async () => (await linesOf(sandbox)).length >= lines.length)
    assert.deepEqual(await linesOf(sandbox), lines)
    await sandbox.stop()
    await sandbox.start()
    await until('it has told again', async () => (await linesOf(sandbox)).length >= lines.length)
    assert.deepEqual(await linesOf(sandbox), lines)
    await sandbox.delete()
  })

  test('if an entrypoint must be process 1, it fails, and its log suggests tini or dumb-init', async () => {
    const image = registry.put('team/init:1', makeBusyboxImage({ Entrypoint: ['/bin/busybox', 'init'] }))
    const sandbox = await daytona.create({ image })
    await until('its end', async () => (await commandOf(sandbox)).exitCode !== undefined)
    const { stderr = '' } = await sandbox.process.getEntrypointLogs()
    assert.match(stderr, /must be run as PID 1\n\n\[not process 1: .*s6-overlay.*tini or dumb-init\.\]\n$/)
    assert.equal((await sandbox.process.executeCommand('echo here')).result, 'here\n')
    await sandbox.delete()
  })

  test('if an entrypoint is killed for lack of memory, its command has `oom`, and its log names the limit', async () => {
    const grows = 'x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done'
    await daytona.snapshot.create({ name: 'hungry', image: reference, entrypoint: ['sh', '-c', grows] })
    const sandbox = await daytona.create({ snapshot: 'hungry' })
    await until('its end', async () => (await commandOf(sandbox)).exitCode !== undefined)
    const { exitCode, oom } = (await commandOf(sandbox)) as { exitCode?: number; oom?: boolean }
    assert.deepEqual([exitCode, oom], [137, true])
    assert.match((await sandbox.process.getEntrypointLogs()).stderr ?? '', /out of memory: .* the limit of \d+ GiB/)
    await sandbox.delete()
  })
})
