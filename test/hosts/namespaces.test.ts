// Tests the simulated hosts of namespaces.ts, which the other tests in this directory use.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { Network } from './namespaces.ts'

suite('the simulated hosts of a test', { skip: needsRoot }, () => {
  test('a simulated host sees only its own processes; a test can disconnect, kill and restart the host', async () => {
    await using network = await Network.open()
    const one = await network.addHost('one')
    const two = await network.addHost('two')
    const reaches = async () =>
      (await two.run(['curl', '--silent', '--max-time', '2', `http://${one.address}:8000/`])).out
    const answer = 'HTTP/1.0 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\nhello'
    const serve = `import socket; s = socket.create_server(("0.0.0.0", 8000)); print("serves", flush=True)\nwhile True:\n c, _ = s.accept(); c.recv(4096); c.sendall(b"${answer}"); c.close()`
    const startServing = async () => {
      const started = one.start(['python3', '-c', serve])
      await started.until('serves')
      return started
    }
    const server = await startServing()
    assert.equal(await reaches(), 'hello')
    one.cut()
    assert.equal(await reaches(), '')
    one.mend()
    assert.equal(await reaches(), 'hello')
    two.block(one.address)
    assert.equal(await reaches(), '')
    two.unblock(one.address)
    assert.equal(await reaches(), 'hello')
    const { out } = await two.run(['sh', '-c', 'ls /run /sys/class/net; ps -e --no-headers | wc -l'])
    assert.match(out.replaceAll(/\s+/g, ' '), /^\/run: lock netns \/sys\/class\/net: eth0 lo \d $/)
    await one.kill()
    assert.notEqual(await server.ended, 0)
    assert.equal(one.isOn, false)
    await one.boot()
    await startServing()
    assert.equal(await reaches(), 'hello')
  })

  test('after a simulated network is closed, none of its files are left', async () => {
    const before = readdirSync(tmpdir()).filter((name) => name.startsWith('alcove-hosts-'))
    {
      await using network = await Network.open()
      await network.addHost('one')
    }
    assert.deepEqual(
      readdirSync(tmpdir()).filter((name) => name.startsWith('alcove-hosts-')),
      before,
    )
  })
})
