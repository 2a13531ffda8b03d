// Tests which networks an image download can reach. Listeners simulate the Internet, a private network and cloud metadata.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { needsRoot } from '#test/needs-root.ts'
import { type NetworkPool, openNetworkPool } from '../network/pool.ts'
import { removeNetwork } from '../network/remove.ts'
import { type Listeners, listenIn } from '../network/testing/listeners.ts'
import { type NameServer, nameServerIn } from '../network/testing/name-server.ts'
import { isPrivateHost, preparePrivateHost, runOnPrivateHost } from '../network/testing/private-host.ts'
import { ImageFailed } from './image-failed.ts'
import { Library } from './library.ts'
import { standardLimits } from './limits.ts'

const instance = 'ab12ce'
const dns = '203.0.113.53'
const places = { public: '203.0.113.5', lan: '192.168.77.7', metadata: '169.254.169.254', host: '198.51.100.1' }

if (!isPrivateHost) {
  test(
    'image downloads reach only addresses that Alcove allows (runs in a network namespace of its own)',
    { skip: needsRoot },
    () => runOnPrivateHost(import.meta.filename),
  )
} else {
  suite('the addresses that an image download may reach', () => {
    let scratch: string
    let names: NameServer
    let outside: Listeners
    let host: Listeners
    let pool: NetworkPool

    before(async () => {
      await preparePrivateHost([places.public, places.lan, places.metadata, dns])
      scratch = await mkdtemp(join(tmpdir(), 'alcove-elsewhere-'))
      await writeFile(join(scratch, 'resolv.conf'), `nameserver ${dns}\n`)
      await runCommand(['mount', '--bind', join(scratch, 'resolv.conf'), '/etc/resolv.conf'])
      names = await nameServerIn('outside', dns)
      await names.say(
        Object.fromEntries(Object.entries(places).map(([name, address]) => [`${name}.test`, { addresses: [address] }])),
      )
      outside = await listenIn('outside', [443])
      host = await listenIn(undefined, [443])
      pool = await openNetworkPool({
        instance,
        log: silentLog(),
        spare: 0,
        resolvers: [dns],
        opened: [`${places.public}/32`],
      })
    })
    after(async () => {
      await pool?.close()
      for (const each of [names, outside, host]) await each?.[Symbol.asyncDispose]()
      await removeNetwork(instance)
      await rm(scratch, { recursive: true, force: true })
    })

    /** Tries to download an image, or a file from the web, and returns the error. */
    const refusalOf = async (
      place: string,
      { seconds = 60, privateRegistries = [] as string[], isWebFile = false } = {},
    ) => {
      const used: string[] = []
      const library = new Library({
        // Each library needs a directory of its own, because a starting library removes unfinished work from its directory.
        poolDir: join(scratch, randomUUID()),
        filesDir: undefined,
        registries: {
          plainRegistries: [],
          privateRegistries,
          authFile: undefined,
          publicNetwork: async () => {
            const slot = await pool.acquire()
            used.push(slot.name)
            const { netnsPath } = slot
            return { netnsPath, resolvers: [dns], [Symbol.asyncDispose]: () => pool.release(slot) }
          },
        },
        limits: { ...standardLimits, keepFreeBytes: 0, answerTimeoutMs: seconds * 1000 },
        log: silentLog(),
      })
      const source = { kind: 'registry', reference: `${place}.test/x:1` } as const
      const { signal } = new AbortController()
      const asked = isWebFile
        ? library.withWebFile({ url: `https://${place}.test/x`, mostBytes: 1e6, signal }, async () => {})
        : library.bring({ image: 'one', source, maxGiB: 1 })
      const error = await asked.then(
        () => assert.fail('nothing listens that speaks TLS'),
        (reason: unknown) => reason,
      )
      assert.ok(error instanceof ImageFailed, String(error))
      assert.ok(!(await runCommand(['ip', 'netns', 'list'])).split(/\s/).some((name) => used.includes(name)))
      return error
    }
    /** Whether a download reaches a listener. The listeners have no TLS, so the download then fails with a TLS error. */
    const reaches = async (...asked: Parameters<typeof refusalOf>) =>
      /first record does not look like a TLS handshake/.test(String((await refusalOf(...asked)).cause))

    test('an image download can reach a registry at a public address', async () => {
      assert.ok(await reaches('public'))
    })

    test('a failed pull does not reveal by error or time whether a registry’s address is unknown or private', async () => {
      const told = await Promise.all(
        ['nowhere', 'lan', 'metadata', 'host'].map(async (place) => {
          const begun = performance.now()
          const { failure, message } = await refusalOf(place, { seconds: 4 })
          const tellsPlace = message.replace(`${place}.test`, 'it')
          return [failure, tellsPlace, performance.now() - begun >= 5000]
        }),
      )
      const alike = ['unreachable', 'The registry it cannot be reached, or does not answer in time.', true]
      assert.deepEqual(told, Array(4).fill(alike))
    })

    test('ADD of a URL reaches only addresses allowed for images; its error does not reveal if a host exists', async () => {
      assert.match(
        (await refusalOf('public', { isWebFile: true })).message,
        /^The file could not be fetched from public\.test\.$/,
      )
      const named = { isWebFile: true, privateRegistries: ['lan.test'] }
      assert.match((await refusalOf('lan', named)).message, /^The file could not be fetched from lan\.test\.$/)
      const told = await Promise.all(
        ['nowhere', 'lan', 'metadata', 'host'].map(async (place) => {
          const begun = performance.now()
          const { failure, message } = await refusalOf(place, { seconds: 4, isWebFile: true })
          return [failure, message.replace(`${place}.test`, 'it'), performance.now() - begun >= 5000]
        }),
      )
      const alike = ['unreachable', 'The server it cannot be reached, or does not answer in time.', true]
      assert.deepEqual(told, Array(4).fill(alike))
    })

    test('an image download can reach a registry that the operator has named, at any address', async () => {
      assert.ok(await reaches('lan', { privateRegistries: ['lan.test'] }))
    })
  })
}
