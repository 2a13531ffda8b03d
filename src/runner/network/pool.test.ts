import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { after, afterEach, before, suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { runCommand } from '#src/kit/run-command.ts'
import type { NetworkPolicy } from '#src/wire/runner-link.ts'
import { type Listeners, listenIn, reaches, sendDatagram } from './listeners.ts'
import { type NetworkPool, type NetworkPoolOptions, openNetworkPool, type Slot } from './pool.ts'
import { cannotRun, isPrivateHost, preparePrivateHost, runOnPrivateHost, wayOut } from './private-host.ts'
import { removeNetwork } from './remove.ts'
import { resolversForSandboxes } from './resolvers.ts'

const instance = 'ab12cd'
const web = { listed: '203.0.113.5', other: '203.0.113.6' }
const metadata = '169.254.169.254'
const lan = '192.168.77.7'
const resolver = resolversForSandboxes()[0] as string

const everything: NetworkPolicy = { blockAll: false, allowList: null }
const nothing: NetworkPolicy = { blockAll: true, allowList: null }
const only = (...allowList: string[]): NetworkPolicy => ({ blockAll: false, allowList })

/** Long where a yes is expected, short where a no is: a busy machine must not turn a yes into a no. */
const open = (from: string | undefined, to: string, port = 80) => reaches(from, to, port, 15)
const isOpen = async (from: Slot, to: string, port = 80) =>
  assert.ok(await open(from.name, to, port), `${to}:${port} is open`)
const isClosed = async (from: Slot, to: string, port = 80) =>
  assert.ok(!(await reaches(from.name, to, port, 1)), `${to}:${port} is closed`)

const openPool = (more: Partial<NetworkPoolOptions> = {}) =>
  openNetworkPool({ instance, log: silentLog(), spare: 0, ...more })

/** Everything about the network of this host that could be left behind. */
const hostNetwork = async () => ({
  links: (await runCommand(['ip', '-o', 'link'])).split('\n').map((line) => line.split(':')[1]),
  routes: await runCommand(['ip', 'route', 'show', 'table', 'all']),
  rules: await runCommand(['nft', 'list', 'ruleset']),
  namespaces: await readdir('/run/netns'),
  notes: (await readdir('/run')).filter((name) => name.startsWith('alcove-')),
  forwarding: await readFile('/proc/sys/net/ipv4/ip_forward', 'utf8'),
})

if (!isPrivateHost) {
  test('the network pool keeps its promises on a host of its own', { skip: cannotRun }, () =>
    runOnPrivateHost(import.meta.filename),
  )
} else {
  suite('what a sandbox reaches', () => {
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
      await preparePrivateHost([...Object.values(web), metadata, lan, resolver])
      outside = await listenIn('outside', [80, 53])
      host = await listenIn(undefined, [80, 9000])
      pool = await openPool()
      for (const address of [...Object.values(web), metadata, lan]) {
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

    test('everything public without a list', async () => {
      const slot = await slotWith(everything)
      await isOpen(slot, web.listed)
      await isOpen(slot, web.other)
    })

    test('only what is listed, with a list', async () => {
      const slot = await slotWith(only(`${web.listed}/32`, '203.0.113.4/31'))
      await isOpen(slot, web.listed)
      await isClosed(slot, web.other)
    })

    test('nothing at all when all is blocked, not even names', async () => {
      const slot = await slotWith(nothing)
      await Promise.all([isClosed(slot, web.listed), isClosed(slot, resolver, 53)])
    })

    test('its resolver, even one in a private range, and there nothing but DNS', async () => {
      const slot = await slotWith(only(`${web.listed}/32`))
      await isOpen(slot, resolver, 53)
      await isClosed(slot, resolver, 80)
    })

    test('a policy that changes is in force at once, for open connections too', async () => {
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
      only(`${metadata}/32`, `${lan}/32`, `${wayOut}/32`, '10.0.0.0/8'),
    ]) {
      const words = policy.allowList === null ? 'no list' : `the list ${policy.allowList.join(' ')}`
      test(`never the host, a sibling, metadata or a private network, with ${words}`, async () => {
        const slot = await slotWith(policy)
        const sibling = await slotWith(policy)
        await using _listening = await listenIn(sibling.name, [80])
        const closed = [wayOut, slot.gateway, metadata, lan, sibling.address].map((address) => isClosed(slot, address))
        await Promise.all([...closed, isClosed(slot, wayOut, 9000)])
      })
    }

    test('the host does not reach into a sandbox either', async () => {
      const slot = await slotWith(everything)
      await using _listening = await listenIn(slot.name, [8000])
      assert.ok(!(await reaches(undefined, slot.address, 8000, 1)))
    })

    test('the rules are what keeps it in: without them all of that is open, and they come back by themselves', async () => {
      const slot = await slotWith(everything)
      const sibling = await slotWith(nothing)
      await using _listening = await listenIn(sibling.name, [80])
      await runCommand(['nft', 'delete', 'table', 'inet', `alcove_${instance}`])
      await isOpen(slot, wayOut, 9000)
      await isOpen(slot, sibling.address)
      assert.ok(await open(undefined, sibling.address))
      // Any change finds the table gone and loads all of it anew.
      await pool.apply(slot, only(`${web.listed}/32`))
      await Promise.all([isClosed(slot, wayOut, 9000), isClosed(slot, sibling.address), isClosed(sibling, web.listed)])
      await isOpen(slot, web.listed)
    })

    test('a made-up source address gets nowhere', async () => {
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

      // The control: it is the rules that stop it.
      await runCommand(['nft', 'flush', 'chain', 'inet', `alcove_${instance}`, 'leaving'])
      await pretend(sibling.address)
      await sendDatagram(slot.name, web.listed, 80, 'as-sibling-unruled')
      await outside.heard('as-sibling-unruled')
      await runCommand(['nft', 'delete', 'table', 'inet', `alcove_${instance}`])
      await pool.apply(slot, nothing)
    })

    test('no IPv6, low ports for every user', async () => {
      const slot = await slotWith(everything)
      const enter = ['nsenter', `--net=${slot.netnsPath}`]
      assert.equal(await runCommand([...enter, 'ip', '-6', 'addr']), '')
      assert.equal((await runCommand([...enter, 'cat', '/proc/sys/net/ipv4/ip_unprivileged_port_start'])).trim(), '0')
    })

    test('what the operator opened, but never metadata or siblings that way', async () => {
      await pool.close()
      pool = await openPool({ opened: ['192.168.77.0/24', '169.254.0.0/16', '10.0.0.0/8'] })
      const slot = await slotWith(everything)
      const sibling = await slotWith(everything)
      await using _listening = await listenIn(sibling.name, [80])
      await isOpen(slot, lan)
      await Promise.all([isClosed(slot, metadata), isClosed(slot, sibling.address)])
      await pool.close()
      pool = await openPool()
    })

    test('a list that is none is refused and changes nothing', async () => {
      const slot = await slotWith(only(`${web.listed}/32`))
      for (const list of [['example.com'], ['1.2.3.4/33'], ['::/0'], ['1.2.3.4; drop'], Array(11).fill('1.2.3.4')]) {
        await assert.rejects(pool.apply(slot, only(...list)), RangeError)
      }
      await isOpen(slot, web.listed)
    })

    test('a host whose own rules forward nothing lets sandboxes out all the same', async () => {
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

  suite('the life of slots', () => {
    afterEach(() => removeNetwork(instance))

    test('each caller gets a slot of its own, also many at once', async () => {
      const pool = await openPool({ spare: 3 })
      const slots = await Promise.all(Array.from({ length: 40 }, () => pool.acquire()))
      assert.equal(new Set(slots.map((slot) => slot.address)).size, 40)
      assert.equal(new Set(slots.map((slot) => slot.netnsPath)).size, 40)
      await Promise.all(slots.map((slot) => pool.release(slot)))
      await pool.close()
      assert.deepEqual(
        (await readdir('/run/netns')).filter((name) => name.includes(instance)),
        [],
      )
    })

    test('a used slot is deleted, and what comes next is another namespace', async () => {
      const pool = await openPool()
      const first = await pool.acquire()
      await runCommand(['ip', '-n', first.name, 'addr', 'add', '10.1.2.3/32', 'dev', 'lo'])
      await pool.release(first)
      await pool.release(first)
      assert.ok(!(await readdir('/run/netns')).includes(first.name))
      const second = await pool.acquire()
      assert.notEqual(second.name, first.name)
      assert.doesNotMatch(await runCommand(['ip', '-n', second.name, 'addr']), /10\.1\.2\.3/)
      await assert.rejects(pool.apply(first, everything))
      await pool.close()
    })

    test('close leaves slots in use; opening again adopts them with their policy and sweeps the rest', async () => {
      const first = await openPool({ spare: 2 })
      const kept = await first.acquire()
      const lost = await first.acquire()
      await first.apply(kept, nothing)
      await first.close()

      const second = await openPool()
      const rules = await runCommand(['nft', 'list', 'map', 'inet', `alcove_${instance}`, 'slots'])
      assert.match(rules, new RegExp(`${kept.address} : drop`))
      assert.equal(second.adopt('alcove-ab12cd-99'), undefined)
      assert.equal(second.adopt('alcove-ffffff-1'), undefined)
      assert.deepEqual(second.adopt(kept.name), kept)
      assert.equal(second.adopt(kept.name), undefined, 'a slot is adopted once')
      assert.deepEqual(await second.sweep(new Set()), [lost.name])
      assert.deepEqual(
        (await readdir('/run/netns')).filter((name) => name.includes(instance)),
        [kept.name],
      )
      await second.release(kept)
      await second.close()
    })

    test('sweep leaves what it is told to keep', async () => {
      const first = await openPool()
      const kept = await first.acquire()
      await first.close()
      const second = await openPool()
      assert.deepEqual(await second.sweep(new Set([kept.name])), [])
      assert.deepEqual(second.adopt(kept.name), kept)
      await second.close()
    })

    test('a half-made slot is not adopted but swept', async () => {
      const first = await openPool()
      const slot = await first.acquire()
      await first.close()
      await runCommand(['ip', 'link', 'del', `al${instance}${slot.name.split('-')[2]}`])
      const second = await openPool()
      assert.equal(second.adopt(slot.name), undefined)
      assert.deepEqual(await second.sweep(new Set()), [slot.name])
      await second.close()
    })

    test('killed at any moment, the next one cleans up and goes on', async () => {
      const program =
        `import { openNetworkPool } from ${JSON.stringify(import.meta.resolve('./pool.ts'))}\n` +
        `import { silentLog } from '#src/kit/log.ts'\n` +
        `const pool = await openNetworkPool({ instance: '${instance}', log: silentLog(), spare: 64 })\n` +
        `for (;;) { const slot = await pool.acquire(); process.stdout.write('.'); void pool.release(slot) }`
      for (const dots of [1, 3, 9]) {
        const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
          cwd: import.meta.dirname,
          stdio: ['ignore', 'pipe', 'inherit'],
        })
        let seen = 0
        await new Promise<void>((resolve, reject) => {
          child.once('close', () => reject(new Error('it ended by itself')))
          child.stdout.on('data', (data: Buffer) => {
            seen += data.length
            if (seen >= dots) resolve()
          })
        })
        const dead = new Promise((resolve) => child.removeAllListeners('close').once('close', resolve))
        child.kill('SIGKILL')
        await dead

        const pool = await openPool()
        await pool.sweep(new Set())
        const slot = await pool.acquire()
        assert.deepEqual(
          (await readdir('/run/netns')).filter((name) => name.includes(instance)),
          [slot.name],
        )
        await pool.release(slot)
        await pool.close()
      }
    })

    test('two servers on one host take different ranges', async () => {
      const [one, two] = await Promise.all([openPool(), openPool({ instance: 'ab12ce' })])
      const [mine, theirs] = [await one.acquire(), await two.acquire()]
      assert.notEqual(mine.gateway, theirs.gateway)
      await two.release(theirs)
      await two.close()
      await removeNetwork('ab12ce')
      await one.close()
    })

    test('removal leaves the host as it was', async () => {
      const before = await hostNetwork()
      const pool = await openPool({ spare: 2 })
      await pool.acquire()
      assert.equal((await readFile('/proc/sys/net/ipv4/ip_forward', 'utf8')).trim(), '1')
      await pool.close()
      await removeNetwork(instance)
      await removeNetwork(instance)
      assert.deepEqual(await hostNetwork(), before)
    })
  })
}
