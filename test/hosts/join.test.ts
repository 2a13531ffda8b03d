// A machine joins a server over the network, with the commands that the server prints, as an operator would do it.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { addRunner, alcove, call, commandOf, settingsOf, startHost, startServer, untilAnswer } from './hosts.ts'
import { Network } from './namespaces.ts'

suite('a host that joins over the network', { skip: needsRoot }, () => {
  test('a joined host runs sandboxes, starts without a token after a power failure, and stops when removed', async () => {
    await using network = await Network.open()
    const [machine, second] = [await network.addHost('server'), await network.addHost('second')]
    const env = await settingsOf(network)
    const server = await startServer(machine, env)
    const token = await addRunner(server, 'second')

    const wayTo = (port: number) =>
      second.run(commandOf('doctor', '--peer', `https://${machine.address}:${port}`, '--token', token))
    const way = await wayTo(4603)
    assert.equal(way.code, 0, way.out)
    const wrong = await wayTo(4600)
    assert.deepEqual([wrong.code, /^FAIL {2}TLS/m.test(wrong.out)], [1, true], wrong.out)

    const publicUrl = `http://${second.address}:4601`
    const options = ['--public-url', publicUrl]
    const host = await startHost(server, second, env, { token, options })
    assert.match(
      await alcove(second, 'status', '--data', second.data),
      /A host of the server at https:.*\n\n +runner +ready.*\n +gate +ready/,
    )
    assert.equal((await server.api('PATCH', '/runners/local/scheduling', { unschedulable: true })).status, 200)
    const made = await server.api('POST', '/sandbox', { name: 'box', autoStopInterval: 0 })
    assert.deepEqual([made.status, made.body['state']], [200, 'started'], JSON.stringify(made.body))
    const id = String(made.body['id'])
    const echo = async (gate: string) => {
      const url = `http://${gate}:4601/toolbox/${id}/process/execute`
      const { status, body } = await call(machine, server.key, 'POST', url, { command: 'echo hello' })
      return [status, body['result']]
    }
    assert.deepEqual(await echo(second.address), [200, 'hello\n'])
    assert.deepEqual(await echo(machine.address), [200, 'hello\n'])

    await second.kill()
    await host.ended
    await second.boot()
    const again = await startHost(server, second, env, { options })
    await untilAnswer(
      () => server.api('GET', `/sandbox/${id}`),
      ({ body }) => body['state'] === 'stopped',
    )
    assert.equal((await server.api('POST', `/sandbox/${id}/start`)).status, 200)
    await untilAnswer(
      () => server.api('GET', `/sandbox/${id}`),
      ({ body }) => body['state'] === 'started',
    )
    const { body: record } = await server.api('GET', `/sandbox/${id}`)
    assert.equal(record['toolboxProxyUrl'], `${publicUrl}/toolbox`)
    assert.deepEqual(await echo(second.address), [200, 'hello\n'])
    assert.deepEqual(await echo(machine.address), [200, 'hello\n'])

    assert.equal((await server.api('DELETE', `/sandbox/${id}`)).status, 200)
    await untilAnswer(
      () => server.api('GET', `/sandbox/${id}`),
      ({ status }) => status === 404,
    )
    await alcove(machine, 'runner', 'remove', 'second', '--data', machine.data)
    assert.equal(await again.ended, 1)
    assert.match(again.text(), /no longer accepts runner "second", for example after "alcove runner remove"/)
    const refused = await second.run(
      commandOf('runner', '--data', second.data, '--join', `https://${machine.address}:4603`),
      { env },
    )
    assert.deepEqual([refused.code, /no longer accepts runner "second"/.test(refused.err)], [1, true], refused.err)
  })
})
