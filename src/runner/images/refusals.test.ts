import assert from 'node:assert/strict'
import { statfsSync } from 'node:fs'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import type { ImageSource } from '#src/wire/runner-link.ts'
import { ImageFailed } from './image-failed.ts'
import { Library } from './library.ts'
import { cannotRun, file, layer, libraryRoom, noise, publicNetwork } from './testing/library-room.ts'
import { digestOf, makeImage, writeLayout } from './testing/oci-image.ts'
import { TestRegistry } from './testing/registry.ts'

suite('image pulls that are refused', { skip: cannotRun }, () => {
  const room = libraryRoom()
  const { open, from, bring, fails, parts } = room

  test('a pull of an image that does not exist fails, and the error says that the image does not exist', async () => {
    const reference = `${room.registry.host}/no/such:1`
    await fails(
      'not-found',
      /^There is no image 127\.0\.0\.1:\d+\/no\/such:1\.$/,
      bring(open(), 'one', from(reference)),
    )
  })

  test('a pull without credentials fails if the registry requires some, and the error says so', async () => {
    const reference = room.registry.put('x:1', makeImage({ layers: [] }))
    room.registry.onRequest = (_path, answer) => ({ ...answer, status: 401, body: Buffer.from('{}') })
    await fails('refused', /wants credentials/, bring(open(), 'one', from(reference)))
  })

  test('a pull from a registry that is down fails, and the error says so', async () => {
    const { host } = room.registry
    const library = open()
    await room.registry[Symbol.asyncDispose]()
    await fails(
      'unreachable',
      /^The registry 127\.0\.0\.1:\d+ does not answer/,
      bring(library, 'one', from(`${host}/x:1`)),
    )
    room.registry = await TestRegistry.start()
  })

  test('a pull from a registry that never answers fails, and the error says so', async () => {
    const reference = room.registry.put('x:1', makeImage({ layers: [] }))
    room.registry.onRequest = () => new Promise(() => {})
    await fails('took-too-long', /within 1 s/, bring(open({ answerTimeoutMs: 1000 }), 'one', from(reference)))
  })

  test('a pull is refused if the operator has not listed the registry, or if its address is private', async () => {
    const registries = {
      plainRegistries: [room.registry.host],
      authFile: undefined,
      publicNetwork,
      registries: ['ghcr.io'],
    }
    const library = new Library({ ...parts(), registries, log: silentLog() })
    await fails('refused', /docker\.io are not allowed/, bring(library, 'one', from('alpine')))
    for (const host of ['10.1.2.3:5000', '169.254.169.254', '192.168.1.1'])
      await fails('refused', /not on the public Internet/, bring(open(), 'one', from(`${host}/x:1`)))
    assert.deepEqual(room.registry.asked, [])
    assert.ok(await bring(library, 'one', from(room.registry.put('x:1', makeImage({ layers: [] })))))
  })

  test('a pull is refused from a registry on this machine that the operator has not allowed', async () => {
    const library = new Library({
      ...parts(),
      registries: { plainRegistries: [], authFile: undefined, publicNetwork },
      log: silentLog(),
    })
    await fails(
      'refused',
      /operator of this server has to allow it/,
      bring(library, 'one', from(`${room.registry.host}/x:1`)),
    )
    assert.deepEqual(room.registry.asked, [])
  })

  test('an image is refused if its manifest, its configuration or a layer does not match the expected digest', async () => {
    const image = makeImage({ layers: [layer(file('a', noise(5000)))] })
    const other = makeImage({ layers: [layer(file('b'))] })
    room.registry.put('x:1', image, other)
    const config = JSON.parse(image.manifest.toString()).config.digest as string
    for (const [wrong, body] of [
      [image.layers[0], Buffer.from(other.blobs.get(other.layers[0] as string) as Buffer)],
      [config, Buffer.from('{}')],
      [image.digest, other.manifest],
    ] as const) {
      room.registry.onRequest = (path, answer) => (path.endsWith(wrong as string) ? { ...answer, body } : answer)
      await fails('corrupted', /is damaged/, bring(open(), 'one', from(`${room.registry.host}/x@${image.digest}`)))
    }
  })

  test('an image is refused if a layer’s contents do not match the diff id in the image’s configuration', async () => {
    const layers = [layer(file('a')), layer(file('b'))]
    // Each unpacked layer must match the diff id at its own position. Here the diff ids are in reverse order.
    const image = makeImage({ layers, diffIds: layers.map(digestOf).reverse() })
    await fails('corrupted', /could not be unpacked/, bring(open(), 'one', from(room.registry.put('x:1', image))))
  })

  test('an image with an invalid manifest is refused', async () => {
    const reference = room.registry.put('x:1', makeImage({ layers: [] }))
    const type = 'application/vnd.oci.image.manifest.v1+json'
    for (const text of ['[]', '{', '{"config":{},"layers":[]}', '{"config":{"digest":"sha256:../../etc","size":1}}']) {
      room.registry.onRequest = (path, answer) =>
        path.includes('/manifests/') ? { status: 200, type, body: Buffer.from(text) } : answer
      await fails('corrupted', /damaged/, bring(open(), 'one', from(reference)))
    }
  })

  test('an image is refused if a layer has an unsupported kind, or file owners that sandboxes cannot have', async () => {
    const encrypted = makeImage({ layers: [layer(file('a'))], layerKind: 'layer.v1.tar+gzip+encrypted' })
    const reference = room.registry.put('x:1', encrypted)
    await fails('unsupported', /not supported \(.*encrypted\)/, bring(open(), 'one', from(reference)))
    const scattered = Array.from({ length: 129 }, (_, at) => file(`f${at}`, '', { uid: 1_000_000 * (at + 1) }))
    const many = from(room.registry.put('x:2', makeImage({ layers: [layer(...scattered)] })))
    await fails('unsupported', /too many users and groups with ids above 200703/, bring(open(), 'one', many))
    const high = makeImage({ layers: [layer(file('a', 'a', { uid: 4_294_967_000 }))] })
    await fails(
      'unsupported',
      /users or groups with ids above 4294801758/,
      bring(open(), 'one', from(room.registry.put('x:3', high))),
    )
  })

  test('an image with too many layers is refused', async () => {
    const image = makeImage({ layers: Array.from({ length: 128 }, (_, at) => layer(file(`f${at}`))) })
    await fails(
      'too-many-layers',
      /128 layers; at most 127/,
      bring(open(), 'one', from(room.registry.put('x:1', image))),
    )
  })

  test('an image that is too large when packed is refused before it is downloaded', async () => {
    const image = makeImage({ layers: [layer(file('a', noise(3_000_000)))] })
    const library = open({ largestBytes: 1000 })
    await fails(
      'too-large',
      /its layers have .*; at most 1000 bytes is allowed/,
      bring(library, 'one', from(room.registry.put('x:1', image))),
    )
    assert.ok(!room.registry.asked.some((path) => path.endsWith(image.layers[0] as string)))
  })

  test('an image that is too large when unpacked is refused: one large file, or many small files', async () => {
    const zeros = (count: number, bytes: number) =>
      makeImage({ layers: [layer(...Array.from({ length: count }, (_, at) => file(`z${at}`, '\0'.repeat(bytes))))] })
    const library = open({ largestBytes: 16 * 1024 * 1024 })
    await fails('too-large', /more than 16 MiB/, bring(library, 'one', from(room.registry.put('x:1', zeros(1, 32e6)))))
    await fails('too-large', /more than 16 MiB/, bring(library, 'one', from(room.registry.put('x:2', zeros(16, 4e6)))))
  })

  test('an image with too many files is refused', async () => {
    const entries = Array.from({ length: 6000 }, (_, at) => file(`d${at % 100}/${at}`, ''))
    const image = makeImage({ layers: [layer(...entries)] })
    const library = open({ mostFiles: 5000 })
    await fails('too-many-files', /more than 5000 files/, bring(library, 'one', from(room.registry.put('x:1', image))))
  })

  test('an image is refused if it has more files than are allowed for its maximum size in GiB', async () => {
    const entries = Array.from({ length: 600 }, (_, at) => file(`d${at % 100}/${at}`, ''))
    const image = makeImage({ layers: [layer(...entries)] })
    const library = open({ filesPerGiB: 500 })
    const source = from(room.registry.put('x:1', image))
    await fails('too-many-files', /more than 500 files/, bring(library, 'one', source))
    assert.equal((await bring(library, 'two', source, { maxGiB: 2 })).image, 'two')
  })

  test('an organization whose images would exceed its share of the disk cannot pull; other organizations can', async () => {
    const { blocks, bsize } = statfsSync(room.directory)
    const library = open({ shareOfOrganization: 5e6 / (blocks * bsize) })
    const image = (name: string) => makeImage({ layers: [layer(file(name, noise(3_000_000)))] })
    const sources = ['a', 'b', 'c'].map((name) => from(room.registry.put(`${name}:1`, image(name))))
    const [first, second, third] = sources as [ImageSource, ImageSource, ImageSource]
    const ours = { organizationId: 'ours' }
    await bring(library, 'one', first, ours)
    // The images `one` and `one-again` have the same files. These files count only once for the organization's quota.
    await bring(library, 'one-again', first, ours)
    await assert.rejects(bring(library, 'two', second, ours), (error: unknown) => {
      assert.ok(error instanceof ImageFailed)
      assert.equal(error.failure, 'no-room')
      assert.match(error.message, /^Image quota exceeded: .* may have 4\.8 MiB .* would have 8\.6 MiB/)
      return true
    })
    assert.deepEqual(
      [library.find('two'), room.below('image-trees').length, room.below('image-work')],
      [undefined, 1, []],
    )
    await bring(library, 'three', third, { organizationId: 'theirs' })
    await library.remove('one')
    await library.remove('one-again')
    await bring(library, 'two', second, ours)
  })

  test('a pull of an image with an invalid name is refused', async () => {
    for (const name of ['', 'UPPER', 'a b', 'x:', 'x@sha256:12', '../x', 'docker://x', '-x', 'a//b', 'x:1/../..'])
      await fails('invalid-reference', /is not the name of an image/, bring(open(), 'one', from(name)))
    await assert.rejects(bring(open(), '../one', from('x')), ImageFailed)
  })

  test('an image file outside of the directory that the operator set for image files is refused', async () => {
    writeLayout(makeImage({ layers: [layer(file('a'))] }), join(room.directory, 'outside'))
    await symlink(join(room.directory, 'outside'), join(room.directory, 'in/link'))
    for (const path of ['../outside', 'link', join(room.directory, 'outside'), '.', '', 'none', 'a\0b', '/etc'])
      await fails('not-found', /^There is no /, bring(open(), 'one', { kind: 'file', path }))
  })
})
