// Tests pulls with the credentials of an organization. The registry listens on loopback and refuses requests without
// credentials.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { createLog } from '#src/kit/log.ts'
import { GuardedRegistry } from '#test/registry/guarded-registry.ts'
import { ImageFailed } from './image-failed.ts'
import { Library } from './library.ts'
import { cannotRun, file, layer, libraryRoom } from './testing/library-room.ts'
import { makeImage } from './testing/oci-image.ts'

const password = 'hidden:"pässword"'

/** The command lines of all processes of this machine. */
const commandLines = () =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
      } catch {
        return ''
      }
    })
    .join('\n')

const filesBelow = (directory: string): string[] =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1'))

suite('private images', { skip: cannotRun, concurrency: false }, () => {
  const room = libraryRoom()
  const { bring, from, read } = room
  const image = makeImage({ layers: [layer(file('a'))] })

  const accountOf = (organizationId: string, more: object = {}) => ({
    organizationId,
    logins: [{ host: room.registry.host, project: '', username: organizationId, password, ...more }],
  })
  const refused = (promise: Promise<unknown>, message: RegExp) =>
    assert.rejects(promise, (error: unknown) => {
      assert.ok(error instanceof ImageFailed && error.failure === 'refused', String(error))
      assert.match(error.message, message)
      return true
    })

  for (const way of ['basic', 'token'] as const)
    test(`an organization pulls with its credentials (${way}); other organizations cannot see the image`, async () => {
      const reference = room.registry.put('team/app:1', image)
      await using guarded = await GuardedRegistry.guard(room.registry, way, { ours: password, theirs: password })
      const lines: string[] = []
      const log = createLog('test', 'debug', { write: (line: string) => void lines.push(line) })
      const library = new Library({ ...room.parts(), log })
      const onLine = (line: string) => void lines.push(line)
      const onRequest = room.registry.onRequest
      const secrets = [password, Buffer.from(`ours:${password}`).toString('base64')]
      const leaks: string[] = []
      room.registry.onRequest = (...request) => {
        // During a pull, no command line and no file may contain a secret.
        const seen = [commandLines(), ...filesBelow(room.parts().poolDir)]
        for (const text of seen)
          for (const secret of secrets) if (text.includes(Buffer.from(secret).toString('latin1'))) leaks.push(text)
        return onRequest(...request)
      }
      await bring(library, 'one', from(reference), { ...accountOf('ours'), onLine })
      assert.equal(read(library, 'one', 'a'), 'a')
      assert.deepEqual(leaks, [])
      room.registry.onRequest = onRequest

      // The image is on this host now. Still, a second pull of the image fails if the registry does not accept the pull's
      // credentials.
      await refused(bring(library, 'none', from(reference)), /wants credentials/)
      await refused(bring(library, 'none', from(reference), { organizationId: 'theirs' }), /wants credentials/)
      const wrong = { ...accountOf('theirs', { password: 'wrong' }), onLine }
      await refused(bring(library, 'none', from(reference), wrong), /does not show it to the account/)
      await refused(library.resolve(reference, 1, AbortSignal.timeout(60_000)), /wants credentials/)
      const digest = await library.resolve(reference, 1, AbortSignal.timeout(60_000), accountOf('ours'))
      assert.equal(digest, image.digest)

      // A pull with another organization's credentials downloads the layers again, because a registry may give different layers
      // for different credentials.
      const blobs = () =>
        room.registry.asked.filter((path) => image.layers.some((layer) => path.endsWith(layer))).length
      const before = blobs()
      await bring(library, 'two', from(reference), { ...accountOf('theirs'), onLine })
      assert.equal(blobs(), before + 1)

      // If the password changes at the registry, the new password works immediately and the old password is refused.
      guarded.accounts.set('ours', 'rotated')
      await refused(bring(library, 'none', from(reference), accountOf('ours')), /does not show it/)
      await bring(library, 'three', from(reference), accountOf('ours', { password: 'rotated' }))
      const kept = [...lines, ...filesBelow(room.directory)].join('\n')
      for (const secret of [...secrets, 'rotated']) assert.ok(!kept.includes(secret))
    })

  test('if two organizations pull one image at the same time, each pull needs valid credentials of its own', async () => {
    const reference = room.registry.put('team/app:1', image)
    await using _guarded = await GuardedRegistry.guard(room.registry, 'basic', { ours: password })
    const library = room.open()
    const [ours, theirs, nobody] = await Promise.allSettled([
      bring(library, 'one', from(reference), accountOf('ours')),
      bring(library, 'two', from(reference), accountOf('theirs')),
      bring(library, 'three', from(reference), { organizationId: 'nobody' }),
    ])
    assert.deepEqual([ours.status, theirs.status, nobody.status], ['fulfilled', 'rejected', 'rejected'])
  })

  test('credentials are not sent to a token server on another host than the registry', async () => {
    const reference = room.registry.put('team/app:1', image)
    await using guarded = await GuardedRegistry.guard(room.registry, 'token', { ours: password })
    guarded.realm = guarded.realm.replace('127.0.0.1', '127.0.0.2')
    await refused(bring(room.open(), 'one', from(reference), accountOf('ours')), /password was not sent/)
    assert.deepEqual(guarded.received, [])
    assert.deepEqual(room.below('images'), [])
  })

  test('credentials are not sent to a registry other than the one they were saved for', async () => {
    const reference = room.registry.put('team/app:1', image)
    await using guarded = await GuardedRegistry.guard(room.registry, 'basic', { ours: password })
    const library = room.open()
    for (const host of ['127.0.0.1', 'docker.io', '127.0.0.1:1'])
      await refused(bring(library, 'one', from(reference), accountOf('ours', { host })), /wants credentials/)
    // Without credentials, skopeo sends an empty user name and password.
    assert.deepEqual([...new Set(guarded.received)], [`Basic ${Buffer.from(':').toString('base64')}`])
  })
})
