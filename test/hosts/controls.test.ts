// Tests two control processes on two simulated machines, with one database on a third machine.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { newApiKey, newEncryptionKey } from '#src/up/data-directory.ts'
import { needsRoot } from '#test/needs-root.ts'
import { call, startControl, startDatabase } from './hosts.ts'
import { Network } from './namespaces.ts'

suite('control processes on separate machines', { skip: needsRoot }, () => {
  test('if the machine of one of two control processes dies, the second control process still serves calls', async () => {
    await using network = await Network.open()
    const [first, second, third] = [
      await network.addHost('first'),
      await network.addHost('second'),
      await network.addHost('database'),
    ]
    await using database = await startDatabase(third)
    const key = newApiKey()
    const options = { database, encryptionKey: newEncryptionKey(), firstKey: key, proxyUrl: 'http://127.0.0.1:1' }
    await startControl(first, options)
    const other = await startControl(second, options)
    const on = (host: typeof first) => `http://${host.address}:4600/api/regions`
    const made = await call(third, key, 'POST', on(first), { name: 'north' })
    assert.equal(made.status, 201, JSON.stringify(made.body))
    const namesOn = async (host: typeof first) => {
      const { body } = await call(third, key, 'GET', on(host))
      return (body as unknown as { name: string }[]).map(({ name }) => name).toSorted()
    }
    assert.deepEqual(await namesOn(second), ['local', 'north'])
    await first.kill()
    assert.deepEqual(await namesOn(second), ['local', 'north'])
    // The host has its own pid namespace, so `pkill` finds no control process of other hosts.
    await second.run(['pkill', '-TERM', '-f', 'bin/control.ts'])
    assert.equal(await other.ended, 0)
  })
})
