import assert from 'node:assert/strict'
import { after, afterEach, before, suite, test } from 'node:test'
import { users } from '#src/kit/confined.ts'
import { silentLog } from '#src/kit/log.ts'
import { runCommand } from '#src/kit/run-command.ts'
import type { NetworkPolicy } from '#src/wire/runner-link.ts'
import { needsRoot } from '#test/needs-root.ts'
import { type NetworkPool, openNetworkPool, type Slot } from './pool.ts'
import { removeNetwork } from './remove.ts'
import { connectionBounds } from './ruleset.ts'
import { type Listeners, listenIn, reaches } from './testing/listeners.ts'
import { ask } from './testing/name-server.ts'
import { isPrivateHost, preparePrivateHost, runOnPrivateHost, wayOut } from './testing/private-host.ts'

const instance = 'ab12cf'
const internet = '203.0.113.0/24'
const web = { listed: '203.0.113.5', other: '203.0.113.6' }
const documentation = '192.0.2.9'
const relay = '192.88.99.1'
const lan = '192.168.77.7'
const metadata = '169.254.169.254'
const gateway = '198.51.100.2'
/** Public addresses in networks to which tests connect the host later. After that, these addresses are closed to sandboxes. */
const later = { onLink: '9.20.0.7', behindVpn: '9.30.0.7', alone: '9.40.0.7', gateway: '9.50.0.1' }

const everything: NetworkPolicy = { blockAll: false, allowList: null }
const nothing: NetworkPolicy = { blockAll: true, allowList: null }
const only = (...allowList: string[]): NetworkPolicy => ({ blockAll: false, allowList })
const named = (...domains: string[]): NetworkPolicy => ({ blockAll: false, allowList: null, domains })

const inside = (slot: Slot, program: string, ...args: string[]) =>
  runCommand(['nsenter', `--net=${slot.netnsPath}`, process.execPath, '-e', program, ...args], { timeoutMs: 60_000 })

const connecting = `const [, host, port] = process.argv
const socket = require('node:net').connect({ host, port: Number(port) })
const end = (word) => { console.log(word); process.exit() }
socket.on('connect', () => end('open')).on('error', ({ code }) => end(code))
setTimeout(() => end('silence'), 5000)`

/** Tries a TCP connection. Returns its error code, `open`, or `silence` if there is no answer within five seconds. */
const tcp = async (from: Slot, to: string, port = 80) => (await inside(from, connecting, to, String(port))).trim()

const sending = `const [, host, port] = process.argv
const socket = require('node:dgram').createSocket('udp4')
const end = (word) => { console.log(word); process.exit() }
socket.on('error', ({ code }) => end(code)).on('message', () => end('open'))
socket.connect(Number(port), host, () => socket.send('x'))
setTimeout(() => end('silence'), 5000)`

const udp = async (from: Slot, to: string, port = 80) => (await inside(from, sending, to, String(port))).trim()

if (!isPrivateHost) {
  test(
    'forbidden connections of sandboxes are refused immediately (runs in a network namespace of its own)',
    { skip: needsRoot },
    () => runOnPrivateHost(import.meta.filename),
  )
} else {
  suite('what a sandbox may not reach', () => {
    let outside: Listeners
    let pool: NetworkPool
    const slots: Slot[] = []
    const slotWith = async (policy: NetworkPolicy, organizationId?: string) => {
      const slot = await pool.acquire()
      slots.push(slot)
      await pool.apply(slot, policy, organizationId)
      return slot
    }
    const isRefused = async (from: Slot, to: string) => {
      assert.equal(await tcp(from, to), 'ECONNREFUSED', `TCP to ${to}`)
      assert.equal(await udp(from, to), 'EHOSTUNREACH', `UDP to ${to}`)
    }

    before(async () => {
      await preparePrivateHost([...Object.values(web), ...Object.values(later), documentation, relay, lan, metadata])
      outside = await listenIn('outside', [80, 53])
      pool = await openNetworkPool({
        instance,
        log: silentLog(),
        spare: 0,
        opened: [internet],
        resolvers: [web.other],
      })
    })
    afterEach(() => Promise.all(slots.splice(0).map((slot) => pool.release(slot))))
    after(async () => {
      await pool.close()
      await outside[Symbol.asyncDispose]()
      await removeNetwork(instance)
    })

    test('connections of sandboxes to private, metadata and host addresses or gateways are refused at once', async () => {
      const slot = await slotWith(everything)
      for (const to of [lan, documentation, relay, metadata, gateway, wayOut]) await isRefused(slot, to)
      assert.equal(await tcp(slot, web.listed), 'open')
    })

    test('connections to addresses outside a list of CIDRs or domains are refused; `block all` refuses all', async () => {
      for (const policy of [only(web.listed), named('listed.test'), nothing]) {
        const slot = await slotWith(policy)
        await isRefused(slot, web.other)
      }
    })

    test('a sandbox’s forbidden packets beyond a limit are dropped; other sandboxes still get refusals', async () => {
      const slot = await slotWith(nothing)
      const flood = `const dgram = require('node:dgram').createSocket('udp4')
        dgram.bind(() => { for (let n = 0; n < 2000; n += 1) dgram.send('x', 80, '${web.listed}'); setTimeout(() => dgram.close(), 50) })`
      await inside(slot, flood)
      const rules = await runCommand(['nft', 'list', 'set', 'inet', `alcove_${instance}`, 'refusals'])
      assert.match(rules, new RegExp(slot.address))
      const sibling = await slotWith(nothing)
      assert.equal(await tcp(sibling, web.listed), 'ECONNREFUSED')
    })

    test('a sandbox has no IPv6, and its attempts to use IPv6 fail immediately', async () => {
      const slot = await slotWith(everything)
      assert.match(await tcp(slot, '2001:4860:4860::8888'), /^E(NETUNREACH|ADDRNOTAVAIL|HOSTUNREACH)$/)
    })

    test('in a sandbox with the policy `block all` no name resolves; the DNS answer comes immediately', async () => {
      const slot = await slotWith(nothing)
      // Alcove's resolver is started when the first sandbox needs it, so it may not be ready yet. The first question is therefore
      // retried.
      await ask(slot.name, web.other, 'example.com')
      assert.equal(await ask(slot.name, web.other, 'example.com', 'A', 1), 'ENOTFOUND')
      assert.equal(await ask(slot.name, web.other, 'example.com', 'AAAA', 1), 'ENOTFOUND')
      await pool.apply(slot, everything)
      assert.equal(await tcp(slot, web.other, 53), 'open')
      await pool.apply(slot, nothing)
      assert.notEqual(await tcp(slot, web.listed, 53), 'silence')
    })

    test('connections of sandboxes to the host’s networks are refused only while the host has these networks', async () => {
      const slot = await slotWith(everything)
      for (const to of Object.values(later)) assert.equal(await tcp(slot, to), 'open', to)
      const soon = async (to: string, word: string) => {
        for (let tries = 0; tries < 50; tries += 1) if ((await tcp(slot, to)) === word) return
        assert.fail(`${to} is not ${word}`)
      }
      const changes = [
        ['route add 9.20.0.0/24 dev up0 table 77', later.onLink],
        ['addr add 9.40.0.1/24 dev up0 noprefixroute', later.alone],
        ['route add 9.60.0.0/24 via 9.50.0.1 dev up0 onlink', later.gateway],
      ] as const
      for (const [change, to] of changes) {
        await runCommand(['ip', ...change.split(' ')])
        await soon(to, 'ECONNREFUSED')
      }
      // Simulates a VPN: a device without a default route, and a network behind a gateway of that device.
      await runCommand(['ip', '-batch', '-'], {
        input:
          'link add vpn0 type veth peer name vpn1\nlink set vpn1 up\naddr add 10.99.0.2/24 dev vpn0\nlink set vpn0 up\nroute add 9.30.0.0/24 via 10.99.0.1 dev vpn0\n',
      })
      await soon(later.behindVpn, 'ECONNREFUSED')
      await runCommand(['ip', 'link', 'del', 'vpn0'])
      await soon(later.behindVpn, 'open')
      for (const [change, to] of changes.toReversed()) {
        await runCommand(['ip', ...change.replace(' add ', ' del ').split(' ')])
        await soon(to, 'open')
      }
    })

    test('when the host gets a new address, sandboxes’ packets to that address are refused immediately', async () => {
      const slot = await slotWith(everything)
      assert.equal(await tcp(slot, web.listed), 'open')
      await runCommand(['ip', 'addr', 'add', `${web.listed}/32`, 'dev', 'lo'])
      assert.equal(await tcp(slot, web.listed), 'ECONNREFUSED')
      await runCommand(['ip', 'addr', 'del', `${web.listed}/32`, 'dev', 'lo'])
    })

    test('on the host, the Linux user of Alcove’s resolver can connect only to port 53', async () => {
      await using _listening = await listenIn(undefined, [8080])
      const from = (uid: number, to: string, port: number) =>
        runCommand([
          'setpriv',
          `--reuid=${uid}`,
          '--clear-groups',
          process.execPath,
          '-e',
          connecting,
          to,
          String(port),
        ])
      assert.equal((await from(users.compiler, '127.0.0.1', 8080)).trim(), 'open')
      for (const [to, port] of [
        ['127.0.0.1', 8080],
        [web.listed, 80],
      ] as const) {
        assert.notEqual((await from(users.resolver, to, port)).trim(), 'open', to)
      }
      assert.equal((await from(users.resolver, web.other, 53)).trim(), 'open')
    })

    test('connections above an organization’s limit are refused; other organizations’ sandboxes can connect', async () => {
      await pool.close()
      const { organization } = connectionBounds(4096)
      pool = await openNetworkPool({
        instance,
        log: silentLog(),
        spare: 0,
        opened: [internet],
        resolvers: [web.other],
        connectionTableSize: 4096,
      })
      const theirs = [
        await slotWith(everything, 'one'),
        await slotWith(everything, 'one'),
        await slotWith(everything, 'one'),
      ]
      const other = await slotWith(everything, 'two')
      const counted = async () => runCommand(['nft', 'list', 'map', 'inet', `alcove_${instance}`, 'organizations'])
      while (!(await counted()).includes(other.address)) await new Promise((resolve) => setTimeout(resolve, 20))
      const flood = `const socket = require('node:dgram').createSocket('udp4')
        let port = 1000
        const more = () => {
          if (port > ${1000 + organization}) return socket.close()
          for (let n = 0; n < 20; n += 1) socket.send('x', ++port, '${web.other}')
          setTimeout(more, 1)
        }
        more()`
      for (const slot of theirs) await inside(slot, flood)
      for (const slot of theirs)
        assert.ok(!(await reaches(slot.name, web.listed, 80, 1)), 'its organization has its share')
      assert.ok(await reaches(other.name, web.listed, 80, 15))
    })
  })
}
