import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { after, afterEach, before, suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { runCommand } from '#src/kit/run-command.ts'
import type { NetworkPolicy } from '#src/wire/runner-link.ts'
import { needsRoot } from '#test/needs-root.ts'
import { type NetworkPool, openNetworkPool, type Slot } from './pool.ts'
import { removeNetwork } from './remove.ts'
import { type Listeners, listenIn, reaches } from './testing/listeners.ts'
import { ask, askOnce, type NameServer, nameServerIn, type Zone } from './testing/name-server.ts'
import { isPrivateHost, preparePrivateHost, runOnPrivateHost, wayOut } from './testing/private-host.ts'

const instance = 'ab12ce'
const dns = '203.0.113.53'
const otherDns = '203.0.113.54'
const web = { api: '203.0.113.5', cdn: '203.0.113.6', other: '203.0.113.7' }
/** Address ranges that are reserved for documentation. In these tests, these ranges are the addresses of the Internet. */
const internet = ['203.0.113.0/24', '198.51.100.0/24']
const metadata = '169.254.169.254'
const lan = '192.168.77.7'

const zone: Zone = {
  'api.example.com': { addresses: [web.api] },
  'www.example.com': { alias: 'edge.cdn.test', ttl: 60 },
  'edge.cdn.test': { addresses: [web.cdn] },
  'other.test': { addresses: [web.other] },
  'many.example.com': { addresses: Array.from({ length: 40 }, (_, n) => `198.51.100.${n + 100}`) },
}

const named = (...domains: string[]): NetworkPolicy => ({ blockAll: false, allowList: null, domains })

const isOpen = async (from: Slot, to: string, port = 80) =>
  assert.ok(await reaches(from.name, to, port, 15), `${to}:${port} is open`)
const isClosed = async (from: Slot, to: string, port = 80) =>
  assert.ok(!(await reaches(from.name, to, port, 1)), `${to}:${port} is closed`)

const openPool = (more: object = {}) =>
  openNetworkPool({ instance, log: silentLog(), spare: 0, resolvers: [dns], opened: internet, ...more })

if (!isPrivateHost) {
  test(
    'sandboxes with a list of domains reach only these domains (runs in a network namespace of its own)',
    { skip: needsRoot },
    () => runOnPrivateHost(import.meta.filename),
  )
} else {
  suite('what a sandbox with a list of domains can reach', () => {
    let names: NameServer
    let otherNames: NameServer
    let outside: Listeners
    let pool: NetworkPool
    const slots: Slot[] = []
    const slotWith = async (policy: NetworkPolicy) => {
      const slot = await pool.acquire()
      slots.push(slot)
      await pool.apply(slot, policy)
      return slot
    }

    before(async () => {
      await preparePrivateHost([...Object.values(web), dns, otherDns, metadata, lan])
      names = await nameServerIn('outside', dns)
      otherNames = await nameServerIn('outside', otherDns)
      await otherNames.say(zone)
      outside = await listenIn('outside', [80])
      pool = await openPool()
    })
    before(() => names.say(zone))
    afterEach(async () => {
      await Promise.all(slots.splice(0).map((slot) => pool.release(slot)))
      await names.say(zone)
    })
    after(async () => {
      await pool.close()
      await outside[Symbol.asyncDispose]()
      await names[Symbol.asyncDispose]()
      await otherNames[Symbol.asyncDispose]()
      await removeNetwork(instance)
      assert.doesNotMatch(await runCommand(['ip', '-4', 'addr', 'show', 'dev', 'lo']), /inet 10\./)
    })

    test('an allowed domain can be reached after a DNS answer for this domain; all other names do not resolve', async () => {
      const slot = await slotWith(named('api.example.com'))
      await isClosed(slot, web.api)
      assert.deepEqual(await ask(slot.name, dns, 'api.example.com'), [web.api])
      await isOpen(slot, web.api)
      assert.equal(await ask(slot.name, dns, 'other.test'), 'ENOTFOUND')
      assert.ok(!names.asked.includes('other.test'), 'nobody is even asked for it')
      await Promise.all([isClosed(slot, web.other), isClosed(slot, web.cdn), isClosed(slot, dns, 80)])
    })

    test('`*.example.com` in a list of domains allows names below example.com, but not example.com itself', async () => {
      const slot = await slotWith(named('*.example.com'))
      assert.deepEqual(await ask(slot.name, dns, 'WWW.Example.Com'), [web.cdn])
      await isOpen(slot, web.cdn)
      for (const name of ['example.com', 'badexample.com', 'edge.cdn.test']) {
        assert.equal(await ask(slot.name, dns, name), 'ENOTFOUND', name)
      }
    })

    test('every DNS question of a sandbox with a list of domains goes to Alcove’s resolver', async () => {
      const slot = await slotWith(named('api.example.com'))
      assert.equal(await ask(slot.name, otherDns, 'other.test'), 'ENOTFOUND')
      assert.deepEqual(await ask(slot.name, otherDns, 'api.example.com'), [web.api])
      assert.deepEqual(otherNames.asked, [])
    })

    test('sandboxes get long DNS answers over TCP instead of UDP; answers for AAAA, TXT, SRV, MX are empty', async () => {
      const slot = await slotWith(named('*.example.com'))
      assert.equal((await ask(slot.name, dns, 'many.example.com')).length, 40)
      for (const type of ['AAAA', 'TXT', 'SRV', 'MX']) {
        assert.equal(await ask(slot.name, dns, 'api.example.com', type), 'ENODATA', type)
      }
      assert.equal(await ask(slot.name, dns, 'none.example.com'), 'ENOTFOUND')
    })

    test('no DNS answer lets a sandbox reach the host, other sandboxes, metadata or private networks', async () => {
      const sibling = await slotWith({ blockAll: false, allowList: null })
      await using _listening = await listenIn(sibling.name, [80])
      await using _host = await listenIn(undefined, [80])
      const slot = await slotWith(named('*.example.com'))
      const targets = [metadata, lan, sibling.address, slot.gateway, '127.0.0.1', '0.0.0.0', '224.0.0.1', wayOut]
      await names.say({ 'rebind.example.com': { addresses: [...targets, web.api] } })
      // The DNS answer may contain the host's own public address. The sandbox cannot reach that address, because the firewall rules
      // close it.
      assert.deepEqual(((await ask(slot.name, dns, 'rebind.example.com')) as string[]).sort(), [wayOut, web.api].sort())
      await isOpen(slot, web.api)
      await Promise.all([metadata, lan, sibling.address, slot.gateway, wayOut].map((to) => isClosed(slot, to)))
    })

    test('a sandbox with a list of CIDRs and a list of domains may reach both; with `block all`, neither', async () => {
      const both = { blockAll: false, allowList: [`${web.other}/32`], domains: ['api.example.com'] }
      const slot = await slotWith(both)
      await isOpen(slot, web.other)
      await ask(slot.name, dns, 'api.example.com')
      await isOpen(slot, web.api)
      await isClosed(slot, web.cdn)
      await pool.apply(slot, { ...both, blockAll: true })
      await Promise.all([isClosed(slot, web.other), isClosed(slot, web.api)])
      assert.notDeepEqual(await askOnce(slot.name, dns, 'api.example.com'), [web.api])
    })

    test('when a sandbox’s list of domains changes, connections that are not allowed any more are cut at once', async () => {
      const slot = await slotWith(named('api.example.com', '*.example.com', 'other.test'))
      await ask(slot.name, dns, 'www.example.com')
      await ask(slot.name, dns, 'other.test')
      await Promise.all([isOpen(slot, web.cdn), isOpen(slot, web.other)])
      await pool.apply(slot, named('other.test'))
      await isOpen(slot, web.other)
      await isClosed(slot, web.cdn)
      assert.equal(await ask(slot.name, dns, 'www.example.com'), 'ENOTFOUND')
      await pool.apply(slot, { blockAll: false, allowList: null })
      await isOpen(slot, web.cdn)
      await pool.apply(slot, named('api.example.com'))
      await Promise.all([isClosed(slot, web.cdn), isClosed(slot, web.other)])
    })

    test('the firewall rules of a domain list are removed with the list, or with the sandbox’s slot', async () => {
      const slot = await slotWith(named('api.example.com'))
      const set = `named${slot.name.split('-')[2]}`
      const rules = () => runCommand(['nft', 'list', 'table', 'inet', `alcove_${instance}`])
      await ask(slot.name, dns, 'api.example.com')
      await pool.apply(slot, { blockAll: true, allowList: null })
      assert.ok(!(await rules()).includes(set))
      await pool.apply(slot, named('other.test'))
      await isClosed(slot, web.api)
      assert.ok((await rules()).includes(set))
      await pool.release(slot)
      assert.ok(!(await rules()).includes(set))
      assert.ok(!(await rules()).includes(`"al${instance}${slot.name.split('-')[2]}"`))
    })

    test('Alcove’s resolver answers only sandboxes with a list of domains', async () => {
      const slot = await slotWith(named('api.example.com'))
      const sibling = await slotWith({ blockAll: false, allowList: [`${web.api}/32`] })
      assert.deepEqual(await ask(sibling.name, dns, 'other.test'), [web.other], 'this one asks whom it means to')
      const rules = await runCommand(['nft', 'list', 'chain', 'inet', `alcove_${instance}`, 'ask'])
      const port = Number(/udp dport 53 dnat ip to [0-9.]+:(\d+)/.exec(rules)?.[1])
      assert.ok(port > 0, rules)
      const from = (netns: string) => askOnce(netns, `${slot.gateway}:${port}`, 'api.example.com')
      await runCommand(['ip', '-n', 'outside', 'route', 'add', slot.gateway, 'via', wayOut])
      assert.equal(await from('outside'), 'ETIMEOUT')
      assert.equal(await from(sibling.name), 'ECONNREFUSED')
      assert.equal(await from(slot.name), 'ECONNREFUSED', 'and these by port 53 only')
    })

    test('an address that a DNS answer opened is closed later, but not while a connection uses the address', async () => {
      await pool.close()
      pool = await openPool({ openTime: { leastSeconds: 1, graceSeconds: 1 } })
      const slot = await slotWith(named('api.example.com', 'other.test'))
      await ask(slot.name, dns, 'api.example.com')
      await ask(slot.name, dns, 'other.test')
      await isOpen(slot, web.other)
      const until = async (address: string, isThere: boolean) => {
        const set = ['nft', 'list', 'set', 'inet', `alcove_${instance}`, `named${slot.name.split('-')[2]}`]
        while ((await runCommand(set)).includes(`${address} `) !== isThere);
      }
      await until(web.api, false)
      await isClosed(slot, web.api)
      await isOpen(slot, web.other)
      await ask(slot.name, dns, 'api.example.com')
      await isOpen(slot, web.api)
      await pool.close()
      pool = await openPool()
      await pool.sweep(new Set())
      slots.length = 0
    })

    test('a firewall table deleted on the host is loaded again, with all addresses that DNS answers had opened', async () => {
      const slot = await slotWith(named('api.example.com'))
      await ask(slot.name, dns, 'api.example.com')
      await runCommand(['nft', 'delete', 'table', 'inet', `alcove_${instance}`])
      const sibling = await slotWith(named('other.test'))
      await isOpen(slot, web.api)
      await isClosed(slot, web.other)
      assert.deepEqual(await ask(sibling.name, dns, 'other.test'), [web.other])
      assert.equal(await ask(slot.name, dns, 'other.test'), 'ENOTFOUND')
    })

    test('if Alcove’s resolver is killed, a new resolver is started with the domain lists of all sandboxes', async () => {
      const slot = await slotWith(named('api.example.com'))
      const pid = (await runCommand(['pgrep', '-P', String(process.pid), '-u', '61004'])).trim()
      assert.match(pid, /^\d+$/, 'it runs as a user of its own')
      process.kill(Number(pid), 'SIGKILL')
      let answer: unknown
      for (let tries = 0; tries < 50 && !Array.isArray(answer); tries++)
        answer = await ask(slot.name, dns, 'api.example.com')
      assert.deepEqual(answer, [web.api])
    })

    test('a killed runner’s opened addresses stay open, and the next runner opens more after DNS answers', async () => {
      await pool.close()
      const script =
        `import { openNetworkPool } from ${JSON.stringify(import.meta.resolve('./pool.ts'))}\n` +
        `import { silentLog } from '#src/kit/log.ts'\n` +
        `const pool = await openNetworkPool({ instance: '${instance}', log: silentLog(), spare: 0, resolvers: ['${dns}'], opened: ${JSON.stringify(internet)} })\n` +
        `const slot = await pool.acquire()\n` +
        `await pool.apply(slot, { blockAll: false, allowList: null, domains: ['api.example.com', 'other.test'] })\n` +
        `console.log(JSON.stringify(slot))\nsetInterval(() => {}, 1000)`
      const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
        cwd: import.meta.dirname,
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const slot = await new Promise<Slot>((resolve) => {
        child.stdout.once('data', (data: Buffer) => resolve(JSON.parse(data.toString()) as Slot))
      })
      assert.deepEqual(await ask(slot.name, dns, 'api.example.com'), [web.api])
      const dead = new Promise((resolve) => child.once('close', resolve))
      child.kill('SIGKILL')
      await dead
      await isOpen(slot, web.api)
      await isClosed(slot, web.other)
      assert.equal(typeof (await askOnce(slot.name, dns, 'other.test')), 'string')

      pool = await openPool()
      const adopted = pool.adopt(slot.name)
      assert.deepEqual(adopted, slot)
      await isOpen(slot, web.api)
      await isClosed(slot, web.other)
      await pool.apply(slot, named('api.example.com', 'other.test'))
      await isOpen(slot, web.api)
      assert.deepEqual(await ask(slot.name, dns, 'other.test'), [web.other])
      await isOpen(slot, web.other)
      // A runner stores the names of opened addresses only in memory. The new runner knows no name for the address `web.api`, so a
      // new list of domains closes this address.
      await pool.apply(slot, named('other.test'))
      await isOpen(slot, web.other)
      await isClosed(slot, web.api)
      slots.push(slot)
    })

    test('an invalid list of domains is refused, and the earlier list stays in force', async () => {
      const slot = await slotWith(named('api.example.com'))
      await ask(slot.name, dns, 'api.example.com')
      const wrong = ['*', '*.com;drop', 'a..b', 'com', '*.*.example.com', 'API.example.com', 'a b.c', '-a.b', '']
      for (const domain of wrong) await assert.rejects(pool.apply(slot, named(domain)), RangeError, domain)
      await assert.rejects(pool.apply(slot, named(...Array.from({ length: 11 }, (_, n) => `a${n}.test`))), RangeError)
      await isOpen(slot, web.api)
    })
  })
}
