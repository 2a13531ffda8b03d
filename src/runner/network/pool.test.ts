import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { afterEach, before, suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { runCommand } from '#src/kit/run-command.ts'
import type { NetworkPolicy } from '#src/wire/runner-link.ts'
import { needsRoot } from '#test/needs-root.ts'
import { makeSlots } from './make-slots.ts'
import { readNotes } from './notes.ts'
import { type NetworkPoolOptions, openNetworkPool, type Slot } from './pool.ts'
import { removeNetwork } from './remove.ts'
import { isPrivateHost, preparePrivateHost, runOnPrivateHost } from './testing/private-host.ts'

const instance = 'ab12cd'

const everything: NetworkPolicy = { blockAll: false, allowList: null }
const nothing: NetworkPolicy = { blockAll: true, allowList: null }

const openPool = (more: Partial<NetworkPoolOptions> = {}) =>
  openNetworkPool({ instance, log: silentLog(), spare: 0, ...more })

/** Returns everything in the host's network that a test could leave behind. */
const hostNetwork = async () => ({
  links: (await runCommand(['ip', '-o', 'link'])).split('\n').map((line) => line.split(':')[1]),
  routes: await runCommand(['ip', 'route', 'show', 'table', 'all']),
  rules: await runCommand(['nft', 'list', 'ruleset']),
  namespaces: await readdir('/run/netns'),
  notes: (await readdir('/run')).filter((name) => name.startsWith('alcove-')),
  forwarding: await readFile('/proc/sys/net/ipv4/ip_forward', 'utf8'),
})

if (!isPrivateHost) {
  test(
    'a runner makes, adopts and removes network slots (runs in a network namespace of its own)',
    { skip: needsRoot },
    () => runOnPrivateHost(import.meta.filename),
  )
} else {
  suite('the life of network slots', () => {
    before(() => preparePrivateHost([]))
    afterEach(() => removeNetwork(instance))

    test('40 concurrent callers of the network pool each get a slot of their own', async () => {
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

    test('a network slot is deleted when it is released, and the next caller gets a new network namespace', async () => {
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

    test('a sandbox’s connections count for its own organization, whichever organization the slot was made for', async () => {
      const pool = await openPool()
      const takenBy = async (organizationId: string) => {
        const slot = await pool.acquire()
        const before = await markOf(slot)
        await pool.apply(slot, everything, organizationId)
        return { before, mark: await markOf(slot) }
      }
      const markOf = async ({ address }: Slot) => {
        const map = await runCommand(['nft', 'list', 'map', 'inet', `alcove_${instance}`, 'organizations'])
        return new RegExp(`${address} : (\\S+)`).exec(map)?.[1]
      }
      const [one, again, two, twoAgain] = [
        await takenBy('one'),
        await takenBy('one'),
        await takenBy('two'),
        await takenBy('two'),
      ]
      assert.ok(one.mark !== undefined && two.mark !== undefined && one.mark !== two.mark)
      assert.deepEqual(
        [one.before, again, two.before, twoAgain],
        [undefined, { before: one.mark, mark: one.mark }, one.mark, { before: two.mark, mark: two.mark }],
      )
      await pool.close()
    })

    test('a reopened network pool can adopt slots in use with their policies; `sweep` deletes all other slots', async () => {
      const first = await openPool({ spare: 2 })
      const kept = await first.acquire()
      const lost = await first.acquire()
      await first.apply(kept, nothing)
      await first.close()

      const second = await openPool()
      const rules = await runCommand(['nft', 'list', 'map', 'inet', `alcove_${instance}`, 'slots'])
      assert.match(rules, new RegExp(`${kept.address} : goto blocked`))
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

    test('`sweep` does not delete the network slots that its argument `keep` names', async () => {
      const first = await openPool()
      const kept = await first.acquire()
      await first.close()
      const second = await openPool()
      assert.deepEqual(await second.sweep(new Set([kept.name])), [])
      assert.deepEqual(second.adopt(kept.name), kept)
      await second.close()
    })

    test('an incomplete network slot is not adopted, and `sweep` deletes the slot', async () => {
      const first = await openPool()
      const slot = await first.acquire()
      await first.close()
      await runCommand(['ip', 'link', 'del', `al${instance}${slot.name.split('-')[2]}`])
      const second = await openPool()
      assert.equal(second.adopt(slot.name), undefined)
      assert.deepEqual(await second.sweep(new Set()), [slot.name])
      await second.close()
    })

    test('a new network pool deletes all slots that a killed runner left, and can make new slots', async () => {
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

    test('when a runner has opened its network pool, surviving processes of a killed runner can make no slots', async () => {
      const pool = await openPool()
      const { range } = await readNotes(instance)
      assert.ok(range)
      await assert.rejects(makeSlots({ instance, range, mtu: 1500, maker: 'the-killed-runner' }, [40], false))
      assert.deepEqual(
        (await readdir('/run/netns')).filter((name) => name.includes(instance)),
        [],
      )
      await pool.release(await pool.acquire())
      await pool.close()
    })

    test('two runners on one host use different ranges of addresses for their sandboxes', async () => {
      const [one, two] = await Promise.all([openPool(), openPool({ instance: 'ab12ce' })])
      const [mine, theirs] = [await one.acquire(), await two.acquire()]
      assert.notEqual(mine.gateway, theirs.gateway)
      await two.release(theirs)
      await two.close()
      await removeNetwork('ab12ce')
      await one.close()
    })

    test('`removeNetwork` restores the host’s network to its state before the instance’s first start', async () => {
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
