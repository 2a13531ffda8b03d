// Runs all commands of the guide many-hosts.md on three simulated machines, as an operator would.
import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { needsRoot } from '#test/needs-root.ts'
import { checkout, programsOf, readPage } from '#test/sandboxes/guide.ts'
import { call, settingsOf, untilAnswer } from './hosts.ts'
import { type Host, Network, type Ran, type Started } from './namespaces.ts'

const page = readPage('docs/guides/many-hosts.md')

type Step = { machine: string; script: string; shown: string | undefined }

/**
 * The commands of the guide many-hosts.md in their order, each with its machine and with the output that the guide shows below it.
 */
const steps: Step[] = [
  ...page.matchAll(/^```sh (server|two|three)\n([\s\S]*?)^```(?:\n\n```text\n([\s\S]*?)^```)?/gm),
].map(([, machine, script, shown]) => ({ machine: machine!, script: script!, shown }))

const staysInForeground = (script: string) => /alcove (up|runner --join) /.test(script)

suite('the guide on many hosts', { skip: needsRoot }, () => {
  let network: Network
  let env: Record<string, string>
  let store: string
  const machines = new Map<string, Host>()
  let token = ''
  let at = 0
  let givenUp = 0

  before(async () => {
    network = await Network.open()
    const { ALCOVE_ARCHIVE_STORE, ...settings } = await settingsOf(network)
    store = ALCOVE_ARCHIVE_STORE!
    env = { ...settings, PATH: `${join(process.execPath, '..')}:${process.env['PATH']}` }
    for (const name of ['server', 'two', 'three']) {
      const host = await network.addHost(name)
      machines.set(name, host)
      // The machines of the test share one file system, so each machine needs a data directory of its own.
      const desk = deskOf(host)
      mkdirSync(join(desk, 'node_modules'), { recursive: true })
      const own = `#!/bin/sh\nexec '${checkout}/alcove' "$@" --data '${host.data}'\n`
      writeFileSync(join(desk, 'alcove'), own, { mode: 0o755 })
      symlinkSync(join(checkout, 'node_modules/@daytona'), join(desk, 'node_modules/@daytona'))
      for (const [file, program] of programsOf(page)) {
        if (file.endsWith('.mjs')) writeFileSync(join(desk, file), program)
      }
    }
  })
  after(() => network?.[Symbol.asyncDispose]())

  const deskOf = ({ name }: Host) => join(network.directory, 'desks', name)

  const machineOf = (name: string): Host => machines.get(name)!

  /**
   * Runs the commands of the next step of many-hosts.md. A server or host that these commands start is ready when the function
   * returns, and keeps running.
   */
  const follow = async (): Promise<Ran & { shown: string | undefined; started?: Started }> => {
    const step = steps[at++]
    assert.ok(step, 'the page has no further step')
    const host = machineOf(step.machine)
    const script = `cd '${deskOf(host)}'\n${step.script.replaceAll('file:///srv/alcove-archive', store).replaceAll('TOKEN', token)}`
    if (!staysInForeground(step.script)) {
      const ran = await host.run(['sh', '-ec', script], { env, timeoutMs: 300_000 })
      assert.equal(ran.code, 0, `${step.script}\n${ran.out}${ran.err}`)
      return { ...ran, shown: step.shown }
    }
    const started = host.start(['sh', '-ec', script], { env })
    await started.until(step.machine === 'server' ? 'Alcove is ready' : 'has joined', 600_000)
    return { code: null, out: '', err: '', shown: step.shown, started }
  }

  const countsIn = (list: string): number[] =>
    [...list.matchAll(/^\w+ +local +\w+ +(\d+)/gm)].map(([, count]) => Number(count))

  test('two machines join a server with the command that the server prints', async () => {
    await follow()
    for (const name of ['two', 'three']) {
      const added = await follow()
      token = added.out.trim()
      assert.match(added.err, new RegExp(`alcove runner --join https://198\\.51\\.100\\.1:4603 --token ${token}$`, 'm'))
      await follow()
      const looked = await machineOf(name).run(
        [
          'sh',
          '-ec',
          `cd '${deskOf(machineOf(name))}'; exec ./alcove doctor --peer https://198.51.100.1:4603 --token ${token}`,
        ],
        { env },
      )
      assert.equal(looked.code, 0, looked.out)
    }
    const { out, shown } = await follow()
    assert.equal(out, shown)
  })

  test('60 sandboxes are spread over three hosts, and all of the sandboxes answer through one gate', async () => {
    const { out } = await follow()
    assert.match(out, /^60 sandboxes answered$/m)
    const counts = countsIn(out)
    assert.equal(counts.length, 3, out)
    assert.ok(
      counts.every((count) => count >= 10),
      out,
    )
  })

  test('sandboxes on all hosts start from a snapshot that was made on one host', async () => {
    assert.match((await follow()).out, /^9 sandboxes have the note$/m)
    const server = machineOf('server')
    const { out: key } = await server.run([join(deskOf(server), 'alcove'), 'key'], { env })
    const api = (method: string, path: string, body?: unknown) =>
      call(server, key.trim(), method, `http://${server.address}:4600/api${path}`, body)
    const hosts = ['local', 'two', 'three']
    for (const host of hosts) {
      const drain = (name: string, unschedulable: boolean) =>
        api('PATCH', `/runners/${name}/scheduling`, { unschedulable })
      for (const name of hosts) await drain(name, name !== host)
      const { body, status } = await untilAnswer(
        () => api('POST', '/sandbox', { snapshot: 'with-note' }),
        (answer) => answer.status === 200,
      )
      assert.equal(status, 200)
      const url = `http://${server.address}:4601/toolbox/${body['id']}/process/execute`
      // Repeat the call, because the sandbox starts only after its host has fetched the snapshot and the snapshot's base image.
      const said = await untilAnswer(
        () => call(server, key.trim(), 'POST', url, { command: 'cat /home/daytona/note' }),
        (answer) => answer.status === 200,
      )
      assert.equal(said.body['result'], 'made on one host\n')
      assert.equal((await api('GET', `/runners/by-sandbox/${body['id']}`)).body['id'], host)
      await api('DELETE', `/sandbox/${body['id']}`)
    }
    for (const name of hosts) await api('PATCH', `/runners/${name}/scheduling`, { unschedulable: false })
  })

  test('a host that is switched off becomes silent, then lost, and can then be removed', async () => {
    await machineOf('three').kill()
    const server = machineOf('server')
    const list = async () => (await server.run([join(deskOf(server), 'alcove'), 'runner', 'list'], { env })).out
    const end = Date.now() + 60_000
    for (let text = await list(); !/^three .* silent /m.test(text); text = await list()) {
      assert.ok(Date.now() < end, text)
      await pause(1_000)
    }
    const { out, shown } = await follow()
    const withoutFigures = (text: string) => text.replaceAll(/\d{4}-[\dT:.-]+Z/g, 'TIME').replaceAll(/\b\d+\b/g, 'N')
    assert.equal(withoutFigures(out), withoutFigures(shown ?? ''))
    givenUp = Number(/(\d+) are in the state error/.exec(out)?.[1])
    assert.match((await follow()).out, /^three is removed\.$/m)
  })

  test('after an operator has emptied and removed a host, its sandboxes answer on another host', async () => {
    const { out } = await follow()
    assert.match(out, /^two is empty\./m)
    assert.match(out, /^two is removed\.$/m)
    const server = machineOf('server')
    const { out: key } = await server.run([join(deskOf(server), 'alcove'), 'key'], { env })
    const startedIn = ({ body }: Awaited<ReturnType<typeof call>>) =>
      (body['items'] as { id: string; state: string }[]).filter(({ state }) => state === 'started')
    const list = `http://${server.address}:4600/api/sandbox?limit=100`
    // The old host is empty before all of its sandboxes have started on other hosts. So wait until they have started.
    const listed = await untilAnswer(
      () => call(server, key.trim(), 'GET', list),
      (answer) => startedIn(answer).length === 60 - givenUp,
    )
    const started = startedIn(listed)
    for (const { id } of started) {
      const url = `http://${server.address}:4601/toolbox/${id}/process/execute`
      const { body: said } = await call(server, key.trim(), 'POST', url, { command: 'hostname' })
      assert.equal(said['exitCode'], 0, JSON.stringify(said))
    }
  })

  test('the tests of this file run every step of the guide for a server with many hosts', () => {
    assert.equal(at, steps.length)
  })
})
