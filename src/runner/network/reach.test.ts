import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, afterEach, before, suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { runCommand } from '#src/kit/run-command.ts'
import type { NetworkPolicy } from '#src/wire/runner-link.ts'
import { needsRoot } from '#test/needs-root.ts'
import { type NetworkPool, type NetworkPoolOptions, openNetworkPool, type Slot } from './pool.ts'
import { removeNetwork } from './remove.ts'
import { resolversForSandboxes } from './resolvers.ts'
import { mostConnections } from './ruleset.ts'
import { type Listeners, listenIn, reaches, sendDatagram } from './testing/listeners.ts'
import { isPrivateHost, preparePrivateHost, runOnPrivateHost, wayOut } from './testing/private-host.ts'

const instance = 'ab12cd'
const web = { listed: '203.0.113.5', other: '203.0.113.6' }
/** An address range that is reserved for documentation. In these tests, the range contains the addresses of the Internet. */
const internet = '203.0.113.0/24'
const metadata = '169.254.169.254'
const azure = '168.63.129.16'
const lan = '192.168.77.7'
const resolver = resolversForSandboxes()[0] as string

const everything: NetworkPolicy = { blockAll: false, allowList: null }
const nothing: NetworkPolicy = { blockAll: true, allowList: null }
const only = (...allowList: string[]): NetworkPolicy => ({ blockAll: false, allowList })

/** Tries to open a connection. The timeout is long, because the tests expect success and the machine may be busy. */
const open = (from: string | undefined, to: string, port = 80) => reaches(from, to, port, 15)
const isOpen = async (from: Slot, to: string, port = 80) =>
  assert.ok(await open(from.name, to, port), `${to}:${port} is open`)
const isClosed = async (from: Slot, to: string, port = 80) =>
  assert.ok(!(await reaches(from.name, to, port, 1)), `${to}:${port} is closed`)

const openPool = (more: Partial<NetworkPoolOptions> = {}) =>
  openNetworkPool({ instance, log: silentLog(), spare: 0, opened: [internet], ...more })

if (!isPrivateHost) {
  test(
    'sandboxes reach only what their policies allow (runs in a network namespace of its own)',
    { skip: needsRoot },
    () => runOnPrivateHost(import.meta.filename),
  )
} else {
  suite('what a sandbox can reach', () => {
    let outside: Listeners
    let host: Listeners
    let pool: NetworkPool
    const slots: Slot[] = []
    const slotWith = async (policy: NetworkPolicy) => {
      const slot = await pool.acquire()
      slots.push(slot)
      await pool.apply(slot, policy)
      return slot
    }

    before(async () => {
      await preparePrivateHost([...Object.values(web), metadata, azure, lan, resolver])
      outside = await listenIn('outside', [80, 53])
      host = await listenIn(undefined, [80, 9000])
      pool = await openPool()
      for (const address of [...Object.values(web), metadata, azure, lan]) {
        assert.ok(await open(undefined, address), `the host itself reaches ${address}`)
      }
    })
    afterEach(() => Promise.all(slots.splice(0).map((slot) => pool.release(slot))))
    after(async () => {
      await pool.close()
      await outside[Symbol.asyncDispose]()
      await host[Symbol.asyncDispose]()
      await removeNetwork(instance)
    })

    test('without a list of CIDRs a sandbox can reach every public address', async () => {
      const slot = await slotWith(everything)
      await isOpen(slot, web.listed)
      await isOpen(slot, web.other)
    })

    test('with a list of CIDRs a sandbox can reach only the listed addresses', async () => {
      const slot = await slotWith(only(`${web.listed}/32`, '203.0.113.4/31'))
      await isOpen(slot, web.listed)
      await isClosed(slot, web.other)
    })

    test('a sandbox with the policy `block all` can reach nothing, not even DNS', async () => {
      const slot = await slotWith(nothing)
      await Promise.all([isClosed(slot, web.listed), isClosed(slot, resolver, 53)])
    })

    test('a sandbox can reach its DNS resolver, even at a private address, but only on port 53', async () => {
      const slot = await slotWith(only(`${web.listed}/32`))
      await isOpen(slot, resolver, 53)
      await isClosed(slot, resolver, 80)
    })

    test('a sandbox’s changed network policy applies immediately, also to open connections', async () => {
      const slot = await slotWith(everything)
      await sendDatagram(slot.name, web.other, 80, 'before')
      await outside.heard('before')
      await pool.apply(slot, only(web.listed))
      await isClosed(slot, web.other)
      await isOpen(slot, web.listed)
      await pool.apply(slot, nothing)
      await isClosed(slot, web.listed)
      await pool.apply(slot, everything)
      await isOpen(slot, web.other)
    })

    for (const policy of [
      everything,
      only('0.0.0.0/0'),
      only(`${metadata}/32`, `${azure}/32`, `${lan}/32`, `${wayOut}/32`, '10.0.0.0/8'),
    ]) {
      const allowedNetworks = policy.allowList === null ? 'all networks' : policy.allowList.join(' ')
      test(`sandboxes cannot reach host, metadata, private networks or each other; allowed: ${allowedNetworks}`, async () => {
        const slot = await slotWith(policy)
        const sibling = await slotWith(policy)
        await using _listening = await listenIn(sibling.name, [80])
        const closed = [wayOut, slot.gateway, metadata, azure, lan, sibling.address].map((address) =>
          isClosed(slot, address),
        )
        await Promise.all([...closed, isClosed(slot, wayOut, 9000)])
      })
    }

    test('the host cannot open a connection into a sandbox', async () => {
      const slot = await slotWith(everything)
      await using _listening = await listenIn(slot.name, [8000])
      assert.ok(!(await reaches(undefined, slot.address, 8000, 1)))
    })

    test('if a firewall table was deleted on the host, the next change of a policy loads it again', async () => {
      const slot = await slotWith(everything)
      const sibling = await slotWith(nothing)
      await using _listening = await listenIn(sibling.name, [80])
      await runCommand(['nft', 'delete', 'table', 'inet', `alcove_${instance}`])
      await isOpen(slot, wayOut, 9000)
      await isOpen(slot, sibling.address)
      assert.ok(await open(undefined, sibling.address))
      // The nft table is missing at this point. `apply` loads the table again, as it does at each change of a policy.
      await pool.apply(slot, only(`${web.listed}/32`))
      await Promise.all([isClosed(slot, wayOut, 9000), isClosed(slot, sibling.address), isClosed(sibling, web.listed)])
      await isOpen(slot, web.listed)
    })

    test('packets with a forged source address do not leave their sandbox', async () => {
      const slot = await slotWith(everything)
      const sibling = await slotWith(everything)
      const pretend = (address: string) =>
        runCommand(['ip', '-n', slot.name, '-batch', '-'], {
          input: `addr replace ${address}/32 dev eth0\nroute replace default via ${slot.gateway} src ${address}\n`,
        })
      await pretend(sibling.address)
      await sendDatagram(slot.name, web.listed, 80, 'as-sibling')
      await pretend(web.other)
      await sendDatagram(slot.name, web.listed, 80, 'as-stranger')
      await pretend(slot.address)
      await sendDatagram(slot.name, web.listed, 80, 'as-itself')
      await outside.heard('as-itself')
      assert.ok(!outside.datagrams.some((line) => /as-(sibling|stranger)/.test(line)), outside.datagrams.join('\n'))

      // Check the test itself: without the rules, packets with a forged source address do leave the sandbox.
      await runCommand(['nft', 'flush', 'chain', 'inet', `alcove_${instance}`, 'leaving'])
      await pretend(sibling.address)
      await sendDatagram(slot.name, web.listed, 80, 'as-sibling-unruled')
      await outside.heard('as-sibling-unruled')
      await runCommand(['nft', 'delete', 'table', 'inet', `alcove_${instance}`])
      await pool.apply(slot, nothing)
    })

    test('a sandbox cannot open more connections than its limit; a second sandbox can still connect', async () => {
      const slot = await slotWith(everything)
      const sibling = await slotWith(everything)
      const atOnce = `const socket = require('node:dgram').createSocket('udp4')
        let port = 1000
        const more = () => {
          if (port > ${1000 + mostConnections * 1.25}) return socket.close()
          for (let n = 0; n < 50; n += 1) socket.send('x', ++port, '${web.other}')
          setTimeout(more, 1)
        }
        more()`
      await runCommand(['nsenter', `--net=${slot.netnsPath}`, process.execPath, '-e', atOnce], { timeoutMs: 120_000 })
      const kept = Number(await readFile('/proc/sys/net/netfilter/nf_conntrack_count', 'utf8'))
      assert.ok(kept > mostConnections * 0.9 && kept < mostConnections + 500, `${kept} are kept`)
      await isClosed(slot, web.listed)
      await isOpen(sibling, web.listed)
    })

    test('a sandbox has no IPv6, and its unprivileged users may listen on low ports', async () => {
      const slot = await slotWith(everything)
      const enter = ['nsenter', `--net=${slot.netnsPath}`]
      assert.equal(await runCommand([...enter, 'ip', '-6', 'addr']), '')
      assert.equal((await runCommand([...enter, 'cat', '/proc/sys/net/ipv4/ip_unprivileged_port_start'])).trim(), '0')
    })

    test('a sandbox can connect to networks that the operator allows, but never to metadata or other sandboxes', async () => {
      await pool.close()
      pool = await openPool({ opened: [internet, '192.168.77.0/24', '169.254.0.0/16', '10.0.0.0/8'] })
      const slot = await slotWith(everything)
      const sibling = await slotWith(everything)
      await using _listening = await listenIn(sibling.name, [80])
      await isOpen(slot, lan)
      await Promise.all([isClosed(slot, metadata), isClosed(slot, sibling.address)])
      await pool.close()
      pool = await openPool()
    })

    test('a network policy with an invalid list of CIDRs is refused, and the earlier policy stays in force', async () => {
      const slot = await slotWith(only(`${web.listed}/32`))
      for (const list of [['example.com'], ['1.2.3.4/33'], ['::/0'], ['1.2.3.4; drop'], Array(11).fill('1.2.3.4')]) {
        await assert.rejects(pool.apply(slot, only(...list)), RangeError)
      }
      await isOpen(slot, web.listed)
    })

    test('sandboxes can reach the Internet even if other rules of the host block forwarding', async () => {
      const firewall =
        'table ip filter {\n chain FORWARD {\n type filter hook forward priority 0; policy drop;\n }\n}\n'
      await runCommand(['nft', '-f', '-'], { input: firewall })
      const before = await runCommand(['nft', 'list', 'table', 'ip', 'filter'])
      const slot = await slotWith(everything)
      await isClosed(slot, web.listed)
      const again = await openPool()
      await isOpen(slot, web.listed)
      await (await openPool()).close()
      assert.equal((await runCommand(['nft', 'list', 'table', 'ip', 'filter'])).match(/accept/g)?.length, 2)
      await again.close()
      await pool.release(slot)
      await pool.close()
      await removeNetwork(instance)
      assert.equal(await runCommand(['nft', 'list', 'table', 'ip', 'filter']), before)
      await runCommand(['nft', 'delete', 'table', 'ip', 'filter'])
      pool = await openPool()
    })
  })
}
