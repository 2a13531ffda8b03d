import assert from 'node:assert/strict'
import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { until } from '#src/toolbox/agent/testing/native-agent.ts'
import { connect, connectedMessage, listed, pty, startBox } from './testing/terminal.ts'

suite('POST /process/pty', () => {
  test('POST /process/pty answers 201 with all fields of the terminal and their defaults', async () => {
    await using box = await startBox()
    const { status, body } = await box.post(pty, { id: 'one' })
    const { createdAt, ...rest } = body
    assert.equal(status, 201)
    assert.ok(Number.isFinite(Date.parse(createdAt)))
    assert.deepEqual(rest, {
      ...{ id: 'one', sessionId: 'one', active: true, lazyStart: false },
      ...{ cwd: homedir(), cols: 80, rows: 24, envs: {} },
    })
  })

  test('the shell of a terminal gets the requested size, directory and variables, and is a login shell', async () => {
    await using box = await startBox({ env: { PATH: process.env['PATH']!, OWN: 'sandbox' } })
    const { body } = await box.post(pty, { id: 'a', cwd: '/tmp', cols: 132, rows: 50, envs: { GREETING: 'über' } })
    assert.deepEqual([body.cwd, body.cols, body.rows, body.envs], ['/tmp', 132, 50, { GREETING: 'über' }])
    const client = await connect(box, 'a')
    client.type('echo "[$(stty size) $PWD $GREETING $OWN $TERM $DAYTONA_SANDBOX_ID"]; shopt login_shell; echo $-\n')
    await client.shows(/\[50 132 \/tmp über sandbox xterm-256color box-1\]/)
    await client.shows(/login_shell\s+on/)
    await client.shows(/\r\n\w*i\w*\r\n/)
    client.hangUp()
  })

  test('POST /process/pty resolves a relative directory from the home, and answers with the absolute path', async () => {
    await using box = await startBox()
    assert.equal((await box.post(pty, { id: 'a', cwd: '.' })).body.cwd, homedir())
  })

  test('POST /process/pty gives the shell the variable TERM that the caller sets', async () => {
    await using box = await startBox()
    await box.post(pty, { id: 'a', envs: { TERM: 'vt100' } })
    const client = await connect(box, 'a')
    client.type('echo "<$TERM>"\n')
    await client.shows(/<vt100>/)
    client.hangUp()
  })

  test('POST /process/pty answers 400 for an invalid id, size, variable or directory, and makes no terminal', async () => {
    await using box = await startBox()
    for (const body of [
      ...[{}, { id: '' }, { id: 'a/b' }, { id: 'x'.repeat(256) }, { id: 'a\nb' }, { id: 'a\0b' }, { id: 7 }],
      ...[
        { id: 'create-connect' },
        { id: '.' },
        { id: '..' },
        { id: 'a', cols: 0 },
        { id: 'a', cols: 1001 },
        { id: 'a', rows: -1 },
      ],
      ...[
        { id: 'a', rows: 1.5 },
        { id: 'a', cols: '80' },
        { id: 'a', lazyStart: 'yes' },
        { id: 'a', envs: ['x'] },
      ],
      ...[
        { id: 'a', envs: { '1x': 'y' } },
        { id: 'a', envs: { x: 'a\0b' } },
        { id: 'a', envs: { x: 7 } },
      ],
      ...[
        { id: 'a', cwd: '/nowhere' },
        { id: 'a', cwd: 'nowhere' },
        { id: 'a', cwd: '/etc/passwd' },
      ],
      ...[{ id: 'a', cwd: 'x'.repeat(2000) }, [], 'text', null],
    ]) {
      const { status } = await box.post(pty, body)
      assert.equal(status, 400, JSON.stringify(body)?.slice(0, 100))
    }
    assert.deepEqual(await listed(box), [])
    assert.deepEqual(await box.native.agent.jobs.list(), [])
  })

  test('POST /process/pty accepts an id of 255 characters of any kind, and treats a null field as absent', async () => {
    await using box = await startBox()
    const id = `ü ?#%&"'\\${'x'.repeat(246)}`
    assert.equal(id.length, 255)
    const nothing = { cwd: null, cols: null, rows: null, envs: null, lazyStart: null }
    assert.equal((await box.post(pty, { id, ...nothing })).status, 201)
    assert.equal((await box.get(`${pty}/${encodeURIComponent(id)}`)).body.id, id)
    assert.deepEqual((await connect(box, id)).controls, [connectedMessage])
    assert.equal((await box.delete(`${pty}/${encodeURIComponent(id)}`)).status, 200)
  })

  test('POST /process/pty answers 409 for an id in use, also to parallel calls; the existing shell is unaffected', async () => {
    await using box = await startBox()
    const replies = await Promise.all([1, 2, 3, 4].map(() => box.post(pty, { id: 'a' })))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [201, 409, 409, 409])
    const client = await connect(box, 'a')
    client.type('mine=1\n')
    assert.equal((await box.post(pty, { id: 'a' })).status, 409)
    client.type('echo "<$mine>"\n')
    await client.shows(/<1>/)
    client.hangUp()
  })

  test('POST /process/pty starts sh if the image has no bash, and answers 422 if it has neither', async () => {
    await using box = await startBox()
    mkdirSync(join(box.directory, 'none'))
    symlinkSync('/bin/sh', join(box.directory, 'sh'))
    assert.equal((await box.post(pty, { id: 'a', envs: { PATH: box.directory } })).status, 201)
    const client = await connect(box, 'a')
    client.type('echo "<$0>"\n')
    await client.shows(/<-?sh>/)
    client.hangUp()
    const { status, body } = await box.post(pty, { id: 'b', envs: { PATH: join(box.directory, 'none') } })
    assert.equal(status, 422)
    assert.match(body.message, /neither bash nor sh/)
    assert.deepEqual(await listed(box), ['a'])
  })

  test('variables that are too large for a terminal’s stored record still reach the terminal’s shell', async () => {
    await using box = await startBox()
    const envs = { SMALL: 's', LARGE: 'x'.repeat(50_000) }
    assert.deepEqual((await box.post(pty, { id: 'a', envs })).body.envs, { SMALL: 's' })
    const client = await connect(box, 'a')
    client.type('echo "<$SMALL $(printenv LARGE | wc -c)>"\n')
    await client.shows(/<s 50001>/)
    client.hangUp()
  })

  test('POST /process/pty answers 429 if the sandbox has 128 terminals', async () => {
    await using box = await startBox()
    for (let i = 0; i < 128; i++) assert.equal((await box.post(pty, { id: `p${i}`, lazyStart: true })).status, 201)
    assert.equal((await box.post(pty, { id: 'more' })).status, 429)
    await box.delete(`${pty}/p0`)
    assert.equal((await box.post(pty, { id: 'more', lazyStart: true })).status, 201)
  })
})

suite('POST /process/pty with lazyStart', () => {
  test('with `lazyStart`, a shell starts with its first client, and its terminal can be resized earlier', async () => {
    await using box = await startBox()
    const { body } = await box.post(pty, { id: 'a', lazyStart: true, envs: { A: 'b' } })
    assert.deepEqual([body.active, body.lazyStart], [false, true])
    assert.equal((await box.post(`${pty}/a/resize`, { cols: 99, rows: 9 })).body.active, false)
    assert.equal((await box.get(`${pty}/a`)).body.active, false)
    const [one, other] = await Promise.all([connect(box, 'a'), connect(box, 'a')])
    one.type('echo "<$(stty size) $A>"\n')
    await one.shows(/<9 99 b>/)
    await other.shows(/<9 99 b>/)
    assert.equal((await box.get(`${pty}/a`)).body.active, true)
    assert.doesNotMatch(one.text, /kill -STOP/)
    one.hangUp()
    other.hangUp()
  })

  test('a terminal with `lazyStart` can be deleted even if its shell never started', async () => {
    await using box = await startBox()
    await box.post(pty, { id: 'a', lazyStart: true })
    assert.equal((await box.delete(`${pty}/a`)).status, 200)
    assert.deepEqual(await listed(box), [])
  })
})

suite('GET /process/pty, GET /process/pty/{sessionId}, DELETE /process/pty/{sessionId}, POST /process/pty/{sessionId}/resize', () => {
  test('GET /process/pty lists all terminals, and GET /process/pty/{sessionId} returns one terminal, or answers 404', async () => {
    await using box = await startBox()
    assert.deepEqual(await box.get(pty), { status: 200, body: { sessions: [] } })
    const made = (await box.post(pty, { id: 'a' })).body
    await box.post(pty, { id: 'b' })
    assert.deepEqual(await listed(box), ['a', 'b'])
    const { sessionId: _, ...info } = made
    assert.deepEqual(await box.get(`${pty}/a`), { status: 200, body: info })
    for (const path of ['/c', `/${'x'.repeat(300)}`, '/%00', '/..%2f']) {
      assert.ok([400, 404].includes((await box.get(pty + path)).status), path)
      assert.ok([400, 404].includes((await box.delete(pty + path)).status), path)
      assert.ok([400, 404].includes((await box.post(`${pty}${path}/resize`, { cols: 1, rows: 1 })).status), path)
    }
  })

  test('DELETE /process/pty/{sessionId} kills all processes of the shell, and clients get exit code 137 and SIGKILL', async () => {
    await using box = await startBox()
    await box.post(pty, { id: 'a' })
    const [told, plain] = [await connect(box, 'a'), await connect(box, 'a', [])]
    told.type('sleep 3600 & setsid sleep 3600 & echo "<$$ $!>"\n')
    const [, shell, child] = await told.shows(/<(\d+) (\d+)>/)
    assert.equal((await box.delete(`${pty}/a`)).status, 200)
    const reason = '{"exitCode":137,"exitReason":"SIGKILL"}'
    assert.deepEqual(
      [await told.end, await plain.end],
      [
        { code: 1011, reason },
        { code: 1011, reason },
      ],
    )
    assert.deepEqual(told.controls.at(-1), { type: 'control', status: 'exited', ...JSON.parse(reason) })
    assert.deepEqual(plain.controls, [connectedMessage])
    // The kernel needs a moment to remove the killed processes.
    for (const pid of [shell, child]) await until(() => !existsSync(`/proc/${pid}`), `the end of ${pid}`)
    assert.deepEqual(await listed(box), [])
    assert.equal((await box.delete(`${pty}/a`)).status, 404)
    assert.equal((await box.post(pty, { id: 'a' })).status, 201)
  })

  test('POST /process/pty/{sessionId}/resize returns the new size, and programs get SIGWINCH and see the new size', async () => {
    await using box = await startBox()
    await box.post(pty, { id: 'a' })
    const client = await connect(box, 'a')
    client.type('sh -c \'trap "echo \\"<\\$(stty size)>\\"" WINCH; echo ready$((1)); while :; do sleep 0.02; done\'\n')
    await client.shows(/ready1/)
    const { status, body } = await box.post(`${pty}/a/resize`, { cols: 1000, rows: 1 })
    assert.deepEqual([status, body.cols, body.rows], [200, 1000, 1])
    await client.shows(/<1 1000>/)
    assert.deepEqual(await box.get(`${pty}/a`), { status: 200, body })
    client.hangUp()
  })

  test('POST /process/pty/{sessionId}/resize answers 400 for a bad size, 404 for an unknown terminal, 410 for an ended one', async () => {
    await using box = await startBox()
    await box.post(pty, { id: 'a' })
    const resize = `${pty}/a/resize`
    for (const body of [{ cols: 0, rows: 1 }, { cols: 1001, rows: 1 }, { cols: 1 }, {}, { cols: 1, rows: 1e9 }, []]) {
      assert.equal((await box.post(resize, body)).status, 400, JSON.stringify(body))
    }
    assert.equal((await box.post(`${pty}/b/resize`, { cols: 1, rows: 1 })).status, 404)
    const client = await connect(box, 'a')
    client.type('exit\n')
    await client.end
    assert.equal((await box.post(resize, { cols: 1, rows: 1 })).status, 410)
  })
})
