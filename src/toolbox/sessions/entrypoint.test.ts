import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { startEntrypoint } from '../agent/entrypoint.ts'
import { until } from '../agent/testing/native-agent.ts'
import { startToolbox, type Toolbox } from '../testing/toolbox.ts'
import { follow, refusalOf } from './testing/follow.ts'

const session = '/process/session/entrypoint'
const command = `${session}/command/entrypoint_command`

/** Starts the entrypoint as the runner does, in the directory of the test. */
const startWith = (box: Toolbox, argv: string[], cwd = box.directory) =>
  startEntrypoint({ assignment: box.assignment, agent: box.native.agent }, argv, cwd)

const letGo = (box: Toolbox) => writeFileSync(join(box.directory, 'go'), '')
const untilLetGo = 'while [ ! -e go ]; do sleep 0.02; done'

const script = (text: string) => ['/bin/sh', '-c', text]

const boxWith = async (argv: string[], cwd?: string): Promise<Toolbox> => {
  const box = await startToolbox({ env: { OWN: 'sandbox', PATH: '/usr/bin:/bin' } })
  await startWith(box, argv, cwd)
  return box
}

const ended = (box: Toolbox) =>
  until(async () => (await box.get(command)).body.exitCode !== undefined, 'the end of the entrypoint')
const seen = (box: Toolbox, wanted: RegExp) =>
  until(async () => wanted.test((await box.get(`${session}/logs`)).body.output), String(wanted))

suite('GET /process/session/entrypoint', () => {
  test('GET /process/session/entrypoint shows the entrypoint’s command, and its exit code after the end', async () => {
    await using box = await boxWith(script(`${untilLetGo}; exit 7`))
    const expected = { id: 'entrypoint_command', command: `/bin/sh -c '${untilLetGo}; exit 7'` }
    assert.deepEqual(await box.get(session), {
      status: 200,
      body: { sessionId: 'entrypoint', commands: [expected] },
    })
    assert.deepEqual(await box.get(command), { status: 200, body: expected })
    letGo(box)
    await ended(box)
    assert.deepEqual((await box.get(session)).body.commands, [{ ...expected, exitCode: 7 }])
  })

  test('GET /process/session/entrypoint shows no command and empty logs if the image has no entrypoint', async () => {
    await using box = await startToolbox()
    assert.deepEqual(await box.get(session), { status: 200, body: { sessionId: 'entrypoint', commands: [] } })
    assert.equal((await box.get(command)).status, 404)
    assert.deepEqual(await box.get(`${session}/logs`), { status: 200, body: { output: '', stdout: '', stderr: '' } })
    const { stdout, code } = await follow(box.socket(`${session}/logs?follow=true`))
    assert.deepEqual([stdout.length, code], [0, 1000])
    assert.equal((await box.get(`${command}/logs`)).status, 404)
    assert.equal(await refusalOf(box.socket(`${command}/logs?follow=true`)), 404)
  })

  test('the session `entrypoint` is not in the list of sessions, and calls that would change it answer 400', async () => {
    await using box = await boxWith(script('sleep 1000'))
    assert.deepEqual((await box.get('/process/session')).body, [])
    assert.equal((await box.post('/process/session', { sessionId: 'entrypoint' })).status, 400)
    assert.equal((await box.delete(session)).status, 400)
    assert.equal((await box.post(`${session}/exec`, { command: 'true' })).status, 400)
    assert.equal((await box.post(`${command}/input`, { data: 'x' })).status, 400)
    assert.equal((await box.get(command)).body.exitCode, undefined)
    assert.equal((await box.get('/process/pty')).body.sessions.length, 0)
  })

  test('the entrypoint has the sandbox’s user and environment, the directory set for it, and no input', async () => {
    await using box = await boxWith(script('id -un; echo $OWN $DAYTONA_SANDBOX_ID; pwd; cat; echo end'), '/tmp')
    await ended(box)
    const { stdout } = (await box.get(`${session}/logs`)).body
    assert.equal(stdout, `${box.assignment.user}\nsandbox box-1\n/tmp\nend\n`)
  })

  test('the entrypoint’s arguments stay separate, and are shown as they would be typed in a shell', async () => {
    await using box = await boxWith(['printf', '<%s>', 'a b', '', "it's", '$HOME'])
    await ended(box)
    assert.equal((await box.get(command)).body.command, `printf '<%s>' 'a b' '' 'it'\\''s' '$HOME'`)
    assert.equal((await box.get(`${session}/logs`)).body.stdout, "<a b><><it's><$HOME>")
  })

  test('the session of the entrypoint shows at most 4 KiB of a long entrypoint, and cuts no character in two', async () => {
    await using box = await boxWith(['true', 'ü'.repeat(4000)])
    await ended(box)
    const shown: string = (await box.get(command)).body.command
    assert.ok(Buffer.byteLength(shown) <= 4096)
    assert.match(shown, /^true 'ü+…$/)
  })

  test('the entrypoint of an image is not run again while the sandbox runs', async () => {
    await using box = await boxWith(script('echo once'))
    await ended(box)
    await startWith(box, script('echo twice'))
    assert.equal((await box.get(`${session}/logs`)).body.stdout, 'once\n')
  })

  for (const [what, argv, cwd] of [
    ['a program that is not there', ['/nowhere'], undefined],
    ['a directory that is not there', ['/bin/true'], '/nowhere'],
  ] as const) {
    test(`an entrypoint with ${what} has exit code 127, and its log has the reason`, async () => {
      await using box = await boxWith([...argv], cwd)
      await ended(box)
      assert.equal((await box.get(command)).body.exitCode, 127)
      assert.match((await box.get(`${session}/logs`)).body.stderr, /^It could not be started: .*No such file/)
    })
  }
})

suite('GET /process/session/entrypoint/logs', () => {
  test('GET /process/session/entrypoint/logs returns stdout, stderr and both combined, during and after the run', async () => {
    await using box = await boxWith(script(`echo out; ${untilLetGo}; echo err >&2; exec sleep 1000`))
    await seen(box, /out/)
    letGo(box)
    await seen(box, /err/)
    const expected = { status: 200, body: { output: 'out\nerr\n', stdout: 'out\n', stderr: 'err\n' } }
    assert.deepEqual(await box.get(`${session}/logs`), expected)
    assert.deepEqual(await box.get(`${command}/logs`), expected)
    const old = { 'x-daytona-sdk-version': '0.143.0' }
    const marked = { status: 200, body: '\u0001\u0001\u0001out\n\u0002\u0002\u0002err\n' }
    assert.deepEqual(await box.get(`${session}/logs`, old), marked)
    assert.deepEqual(await box.get(`${command}/logs`, old), marked)
  })

  for (const path of [session, command]) {
    test(`${path}/logs?follow=true sends earlier output, then new output, then closes with 1000`, async () => {
      await using box = await boxWith(script(`echo one; echo err >&2; ${untilLetGo}; echo two`))
      await seen(box, /err/)
      const socket = box.socket(`${path}/logs?follow=true`)
      const following = follow(socket)
      await once(socket, 'message')
      letGo(box)
      const { stdout, stderr, code, frames } = await following
      assert.deepEqual([stdout.toString(), stderr.toString(), code], ['one\ntwo\n', 'err\n', 1000])
      for (const frame of frames) assert.ok(['010101', '020202'].includes(frame.subarray(0, 3).toString('hex')))
      // A socket without `follow` sends the output that exists, then closes.
      assert.equal((await follow(box.socket(`${path}/logs`))).stdout.toString(), 'one\ntwo\n')
    })
  }

  for (const [what, line, status, isExplained] of [
    ['an entrypoint that must be process 1', 's6-overlay-suexec: fatal: can only run as pid 1', 100, true],
    ['an entrypoint that only mentions process 1', 'Tini is not running as PID 1', 1, false],
    ['an entrypoint that succeeds', 'can only run as pid 1', 0, false],
  ] as const)
    test(`the log of ${what} ${isExplained ? 'ends with a hint about process 1' : 'gets no hint about process 1'}`, async () => {
      await using box = await boxWith(script(`echo '${line}' >&2; exit ${status}`))
      await ended(box)
      const { stderr } = (await box.get(`${session}/logs`)).body
      const ours = /^\n\[not process 1: .* s6-overlay .* tini or dumb-init\.\]\n$/
      assert.equal(stderr.startsWith(`${line}\n`), true)
      assert.equal(ours.test(stderr.slice(line.length + 1)), isExplained, stderr)
      for (const path of [session, command]) {
        const followed = await follow(box.socket(`${path}/logs?follow=true`))
        assert.deepEqual([followed.stderr.toString(), followed.code], [stderr, 1000])
      }
    })

  test('an entrypoint’s log above 16 MiB keeps its beginning and end, and reports the number of lost bytes', async () => {
    await using box = await boxWith(script("echo BEGIN; head -c 40000000 /dev/zero | tr '\\0' x; echo; echo the-end"))
    await ended(box)
    const { body } = await box.get(`${session}/logs`)
    assert.equal(body.truncated, true)
    assert.match(body.stdout, /^BEGIN\nx+\n\[output truncated: \d+ bytes [^\]]+\]\nx+\nthe-end\n$/)
    assert.ok(body.stdout.length < 17 * 1024 * 1024)
  })

  test('GET /process/session/entrypoint/logs answers 400 for an invalid `follow`, also over a WebSocket', async () => {
    await using box = await startToolbox()
    assert.equal((await box.get(`${session}/logs?follow=maybe`)).status, 400)
    assert.equal(await refusalOf(box.socket(`${session}/logs?follow=maybe`)), 400)
  })
})
