import assert from 'node:assert/strict'
import { once } from 'node:events'
import { suite, test } from 'node:test'
import { WebSocket } from 'ws'
import { announceCredentialChange } from '#src/control/auth/announce.ts'
import { hashKey } from '#src/control/auth/secret.ts'
import { createSandbox } from '#src/control/sandboxes/verbs/create.ts'
import { startControlProcess } from '#test/control/control-process.ts'
import { startControl } from '#test/control/harness.ts'
import { keys, organizations, userId } from '#test/control/people.ts'
import { connectRunner, untilState } from '#test/control/simulated-runner.ts'
import { openRunning } from '../open-running.ts'

/** Connects a Socket.IO client that stores the messages it receives. `next` waits for the next message. */
const connect = async (base: string, query = 'EIO=4&transport=websocket') => {
  const socket = new WebSocket(`${base.replace('http', 'ws')}/api/socket.io/?${query}`)
  const heard: string[] = []
  const closed = once(socket, 'close').then(([code]) => code as number)
  let wake = () => {}
  socket.on('message', (data) => {
    heard.push(String(data))
    wake()
  })
  await once(socket, 'open')
  let read = 0
  const next = async (): Promise<string> => {
    while (heard.length <= read) {
      const woken = new Promise<void>((resolve) => {
        wake = resolve
      })
      if (heard.length <= read)
        await Promise.race([woken, closed.then((code) => Promise.reject(new Error(`closed ${code}`)))])
    }
    return heard[read++] as string
  }
  return { socket, heard, next, closed, [Symbol.dispose]: () => socket.terminate() }
}

const signedIn = async (base: string, key: string) => {
  const client = await connect(base)
  await client.next()
  client.socket.send(`40${JSON.stringify({ token: key })}`)
  assert.match(await client.next(), /^40\{"sid":"/)
  return client
}

const eventOf = (text: string) => {
  assert.ok(text.startsWith('42'), text)
  return JSON.parse(text.slice(2)) as [string, never]
}

suite('GET {prefix}/socket.io/', () => {
  test('a Socket.IO connection opens with a handshake, and accepts an API key as sign-in', async () => {
    await using app = await startControl()
    const base = await app.listen()
    using client = await connect(base, 'source=sdk&sdkVersion=0&EIO=4&transport=websocket')
    const open = await client.next()
    assert.equal(open[0], '0')
    const { sid, ...times } = JSON.parse(open.slice(1))
    assert.ok(sid.length > 10)
    assert.deepEqual(times, { upgrades: [], pingInterval: 25_000, pingTimeout: 20_000, maxPayload: 1_000_000 })
    client.socket.send(`40${JSON.stringify({ token: keys.member })}`)
    assert.match(await client.next(), /^40\{"sid":"[\w-]+"\}$/)
  })

  test('a Socket.IO connection is refused if its API key is invalid or not of the URL’s organization', async () => {
    await using app = await startControl()
    const base = await app.listen()
    const refused = async (auth: string, query?: string) => {
      using client = await connect(base, query)
      await client.next()
      client.socket.send(auth)
      assert.equal(await client.next(), '44{"message":"Unauthorized"}')
      await client.closed
    }
    await refused('40{"token":"dtn_wrong"}')
    await refused('40')
    await refused('40{')
    await refused('40{"token":7}')
    await refused(`40{"token":"${keys.stranger}"}`, `EIO=4&transport=websocket&organizationId=${organizations.ours}`)
  })

  test('the Socket.IO endpoint answers 400 for long polling and for other protocol versions', async () => {
    await using app = await startControl()
    assert.equal((await app.as('nobody').get('/socket.io/?EIO=4&transport=polling')).status, 400)
    assert.equal((await app.as('nobody').post('/socket.io/?EIO=4&transport=polling')).status, 400)
    const base = await app.listen()
    const old = new WebSocket(`${base.replace('http', 'ws')}/api/socket.io/?EIO=3&transport=websocket`)
    const [, refusal] = await once(old, 'unexpected-response')
    assert.equal(refusal.statusCode, 400)
  })

  test('if a sandbox fails, Socket.IO clients get its record with the reason before they get its new state', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using runner = await connectRunner(app)
    const { id } = (await app.as('member').post('/sandbox', { name: 'box' })).body
    using client = await signedIn(runner.base, keys.viewer)
    const { generation } = runner.asked.at(-1)!
    runner.report({ sandboxId: id, generation, state: 'error', errorReason: 'Its memory ran out.' })
    await untilState(app, id, 'error')
    const [first, record] = eventOf(await client.next()) as unknown as [string, { id: string; errorReason: string }]
    assert.deepEqual([first, record.id, record.errorReason], ['sandbox.created', id, 'Its memory ran out.'])
    const [second, told] = eventOf(await client.next()) as unknown as [string, { newState: string }]
    assert.deepEqual([second, told.newState], ['sandbox.state.updated', 'error'])
  })

  test('a Socket.IO client gets its organization’s events in order, and no other organization’s events', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using runner = await connectRunner(app)
    const base = runner.base
    using client = await signedIn(base, keys.viewer)
    using stranger = await signedIn(base, keys.stranger)
    const { id } = (await app.as('member').post('/sandbox', { name: 'box' })).body
    await app.as('member').post('/sandbox/box/stop')
    await untilState(app, id, 'stopped')
    const created = eventOf(await client.next()) as unknown as [string, { id: string; state: string }]
    assert.deepEqual([created[0], created[1].id, created[1].state], ['sandbox.created', id, 'creating'])
    for (const [from, to] of [
      ['creating', 'started'],
      ['started', 'stopping'],
      ['stopping', 'stopped'],
    ]) {
      const [name, told] = eventOf(await client.next()) as unknown as [
        string,
        { sandbox: { id: string; state: string }; oldState: string; newState: string },
      ]
      assert.deepEqual(
        [name, told.sandbox.id, told.sandbox.state, told.oldState, told.newState],
        ['sandbox.state.updated', id, to, from, to],
      )
    }
    // The client `stranger`, of the other organization, must get only the event of this second sandbox.
    await app.as('stranger').post('/sandbox', { name: 'theirs' })
    const [, theirs] = eventOf(await stranger.next()) as unknown as [string, { name: string }]
    assert.equal(theirs.name, 'theirs')
  })

  test('a Socket.IO client gets events of changes that another control process made', async () => {
    await using app = await startControl()
    await using runner = await connectRunner(app)
    using client = await signedIn(runner.base, keys.viewer)
    const other = await openRunning(
      { ...app.parts, callers: app.app.sandboxes.callers },
      { sweepSeconds: 0, createWaitSeconds: 0 },
    )
    try {
      const caller = await (await other.callers.find(keys.member))?.in(undefined)
      assert.ok(caller)
      const row = await createSandbox(other, caller, { name: 'elsewhere' })
      const [name, sandbox] = eventOf(await client.next()) as unknown as [string, { id: string }]
      assert.deepEqual([name, sandbox.id], ['sandbox.created', row.id])
      // `other` stands for another control process. The runner has its link to `app`, so `app` handles the reports of
      // the runner.
      await untilState(app, row.id, 'started')
    } finally {
      await other.close()
    }
  })

  test('a warm sandbox causes no events before a create claims it; the claim causes `sandbox.created`', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using runner = await connectRunner(app)
    using client = await signedIn(runner.base, keys.viewer)
    await app.as('owner').post('/warm-pools', { snapshot: 'default', pool: 1, target: 'local' })
    for (const end = Date.now() + 20_000; Date.now() < end; ) {
      await app.sweep()
      const [row] = await app.database.sql`select 1 from sandboxes where state = 'started' and warm_pool_id is not null`
      if (row) break
    }
    const { id } = (await app.as('member').post('/sandbox', {})).body
    const [name, sandbox] = eventOf(await client.next()) as unknown as [string, { id: string; state: string }]
    assert.deepEqual([name, sandbox.id, sandbox.state], ['sandbox.created', id, 'started'])
  })

  test('a Socket.IO client that does not read gets no replies to its pings, so these replies fill no memory', async ({
    mock,
  }) => {
    await using app = await startControl()
    using client = await signedIn(await app.listen(), keys.member)
    // From now on, every WebSocket reports one unsent byte, as if its client did not read.
    mock.getter(WebSocket.prototype, 'bufferedAmount', () => 1)
    client.socket.send('2')
    client.socket.send('41')
    assert.equal(await client.closed, 1000)
    assert.ok(!client.heard.includes('3'))
  })

  test('control answers Socket.IO pings; a disconnect message or an oversized message ends the connection', async () => {
    await using app = await startControl()
    const base = await app.listen()
    using client = await signedIn(base, keys.member)
    client.socket.send('2')
    assert.equal(await client.next(), '3')
    client.socket.send('41')
    assert.equal(await client.closed, 1000)
    using loud = await signedIn(base, keys.member)
    loud.socket.send('x'.repeat(20_000))
    assert.equal(await loud.closed, 1009)
  })

  test('an oversized Socket.IO message closes the connection before all of the message has arrived', async () => {
    await using app = await startControl()
    using client = await connect(await app.listen())
    client.socket.send('x'.repeat(16 * 1024), { fin: false })
    client.socket.send('x', { fin: false })
    assert.equal(await client.closed, 1009)
  })

  test('a Socket.IO client that has not signed in gets no events', async () => {
    await using app = await startControl()
    await using runner = await connectRunner(app)
    using silent = await connect(runner.base)
    using client = await signedIn(runner.base, keys.member)
    await app.as('member').post('/sandbox', { name: 'box' })
    await client.next()
    assert.equal(silent.heard.length, 1)
  })
})

suite('a Socket.IO client whose credential becomes invalid', () => {
  test('a Socket.IO client is disconnected when its API key expires; other clients still get events', async () => {
    await using app = await startControl()
    await using runner = await connectRunner(app)
    const expiresAt = new Date(app.clock.now().getTime() + 60_000)
    await app.database.sql`update api_keys set expires_at = ${expiresAt} where hash = ${hashKey(keys.viewer)}`
    using client = await signedIn(runner.base, keys.viewer)
    using other = await signedIn(runner.base, keys.member)
    app.clock.advance({ seconds: 60 })
    await app.as('member').post('/sandbox', { name: 'box' })
    eventOf(await other.next())
    assert.equal(await client.closed, 1008)
    assert.equal(client.heard.length, 2)
  })

  test('every control process disconnects the Socket.IO clients of a deleted key or of a removed user', async () => {
    await using app = await startControl()
    await using _runner = await connectRunner(app)
    await using other = await startControlProcess(app.url)
    const base = other.base.replace(/\/api$/, '')
    const made = await app.as('owner').post('/api-keys', { name: 'second', permissions: [] })
    using byKey = await signedIn(base, made.body.value)
    using byMember = await signedIn(base, keys.member)
    using byViewer = await signedIn(base, keys.viewer)
    using stays = await signedIn(base, keys.owner)

    // The sandbox is created in the first control process. The clients are connected to the second control process, and
    // get the event too.
    const { id } = (await app.as('member').post('/sandbox', { name: 'box' })).body
    for (const client of [byKey, byMember, byViewer, stays]) {
      const [name, sandbox] = eventOf(await client.next()) as unknown as [string, { id: string }]
      assert.deepEqual([name, sandbox.id], ['sandbox.created', id])
    }

    assert.equal((await app.as('owner').delete('/api-keys/second')).status, 204)
    assert.equal(await byKey.closed, 1008)
    const removed = await app.as('owner').delete(`/organizations/${organizations.ours}/users/${userId('member')}`)
    assert.equal(removed.status, 204)
    assert.equal(await byMember.closed, 1008)
    await app.database.transaction(async (transaction) => {
      await transaction`delete from users where id = ${userId('viewer')}`
      await announceCredentialChange(transaction)
    })
    assert.equal(await byViewer.closed, 1008)
    await untilState(app, id, 'started')
    await app.as('owner').delete('/sandbox/box')
    for (let text = ''; !text.includes('"newState":"destroyed"'); ) text = await stays.next()
    assert.equal(stays.socket.readyState, WebSocket.OPEN)
  })
})

suite('the pings that control sends to Socket.IO clients', () => {
  test('a Socket.IO client that answers pings is disconnected at a later ping if its API key is deleted', async () => {
    await using app = await startControl({ sandboxes: { eventPingSeconds: 0.05 } })
    const base = await app.listen()
    using client = await signedIn(base, keys.member)
    assert.equal(await client.next(), '2')
    // The client answers every ping with a pong (`3`). Several pings may arrive before control notices that the key was
    // deleted.
    client.socket.on('message', () => client.socket.send('3'))
    client.socket.send('3')
    await app.database.sql`delete from api_keys where hash = ${hashKey(keys.member)}`
    app.app.sandboxes.callers.forget()
    assert.equal(await client.closed, 1008)
  })

  test('a Socket.IO client that does not answer a ping in time is disconnected', async () => {
    await using app = await startControl({ sandboxes: { eventPingSeconds: 0.05, eventPongSeconds: 0.05 } })
    const base = await app.listen()
    using silent = await signedIn(base, keys.member)
    assert.equal(await silent.next(), '2')
    // 1006: the connection was closed without a closing handshake.
    assert.equal(await silent.closed, 1006)
  })
})
