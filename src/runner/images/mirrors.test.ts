import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readMirrors } from '#src/kit/registry-mirrors.ts'
import { mirrored } from './mirrors.ts'
import { formatReference, parseReference } from './reference.ts'
import { cannotRun, file, layer, libraryRoom } from './testing/library-room.ts'
import { makeImage } from './testing/oci-image.ts'
import { TestRegistry } from './testing/registry.ts'

suite('the names of images in mirrors', () => {
  test('an image’s name in a mirror is the mirror’s address and path, then the image’s repository and tag', () => {
    const mirrors = readMirrors(['docker.io=cache:5000/hub', 'docker.io=second', 'ghcr.io=third']) ?? []
    const named = (name: string) => mirrored(parseReference(name), mirrors).map(formatReference)
    assert.deepEqual(named('alpine:3'), ['cache:5000/hub/library/alpine:3', 'second/library/alpine:3'])
    assert.deepEqual(named('ghcr.io/x/y'), ['third/x/y:latest'])
    assert.deepEqual(named('quay.io/x/y'), [])
  })

  test('a list of registry mirrors is refused as a whole if one entry is invalid', () => {
    for (const bad of ['docker.io', '=x', 'docker.io=', 'docker.io=https://x', 'a=b=c', 'a=b/../c=d', 'a=b/C'])
      assert.equal(readMirrors(['docker.io=fine', bad]), undefined, bad)
  })
})

suite('images of a registry with a mirror', { skip: cannotRun }, () => {
  const room = libraryRoom()
  const image = makeImage({ layers: [layer(file('from', 'both'))] })
  const bring = async (mirror: TestRegistry, reference: string) => {
    const lines: string[] = []
    const library = room.open({}, [mirror])
    const onLine = (line: string) => lines.push(line)
    await room.bring(library, 'one', room.from(reference), { onLine })
    assert.equal(room.read(library, 'one', 'from'), 'both')
    return lines
  }

  test('if a mirror has an image, the image is pulled from the mirror, without a request to the registry', async () => {
    await using mirror = await TestRegistry.start()
    const reference = room.registry.put('x/y:1', image)
    mirror.put('hub/x/y:1', image)
    const [first] = await bring(mirror, reference)
    assert.deepEqual(room.registry.asked, [])
    assert.match(first ?? '', new RegExp(`^asking the mirror ${mirror.host}$`))
  })

  test('an image is pulled from its registry if the registry’s mirror does not have the image, or fails', async () => {
    await using mirror = await TestRegistry.start()
    const reference = room.registry.put('x/y:1', image)
    assert.ok(
      (await bring(mirror, reference)).includes(`the mirror does not have the image; asking ${room.registry.host}`),
    )
    mirror.onRequest = (_path, answer) => ({ ...answer, status: 500 })
    await room.open().remove('one')
    assert.ok((await bring(mirror, reference)).includes(`the mirror cannot be used; asking ${room.registry.host}`))
  })

  test('an image from a mirror is not used if its digest differs from the requested digest', async () => {
    await using mirror = await TestRegistry.start()
    room.registry.put('x/y:1', image)
    const other = makeImage({ layers: [layer(file('from', 'another'))] })
    mirror.put('hub/x/y:1', image)
    mirror.onRequest = (path, answer) => (path.includes('/manifests/') ? { ...answer, body: other.manifest } : answer)
    await bring(mirror, `${room.registry.host}/x/y@${image.digest}`)
    assert.ok(room.registry.asked.length > 0)
  })

  test('a mirror at a private address gets no request if the operator has not allowed the address', async () => {
    await using mirror = await TestRegistry.start()
    const reference = room.registry.put('x/y:1', image)
    mirror.put('hub/x/y:1', image)
    const library = room.open({}, [mirror], 'not allowed')
    await room.bring(library, 'one', room.from(reference))
    assert.deepEqual(mirror.asked, [])
  })
})

suite('a registry that limits the rate of calls', { skip: cannotRun }, () => {
  const room = libraryRoom()

  test('a pull fails if the registry answers 429 until the timeout; the error names the registry settings', async () => {
    const reference = room.registry.put('x/y:1', makeImage({ layers: [layer(file('a'))] }))
    room.registry.onRequest = (_path, answer) => ({ ...answer, status: 429, body: Buffer.from('slow down') })
    const library = room.open({ answerTimeoutMs: 3000 })
    const message = /too many requests.*ALCOVE_REGISTRY_AUTH.*ALCOVE_REGISTRY_MIRRORS/
    await room.fails('refused', message, room.bring(library, 'one', room.from(reference)))
  })
})
