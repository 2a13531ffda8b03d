// Tests images that need special handling: an index for several machines, artifacts that are no images, special compression,
// and hard links between layers.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { constants, gzipSync, zstdCompressSync } from 'node:zlib'
import { silentLog } from '#src/kit/log.ts'
import { Library } from './library.ts'
import { cannotRun, file, layer, libraryRoom } from './testing/library-room.ts'
import { makeArtifact, makeImage, makeIndex } from './testing/oci-image.ts'

const randomText = (length: number) => randomBytes(length / 2).toString('hex')
const architecture = process.arch === 'x64' ? 'amd64' : process.arch
const ours = { os: 'linux', architecture }

suite('images of registries, handled as Docker handles them', { skip: cannotRun }, () => {
  const room = libraryRoom()
  const { open, from, bring, fails, rootfs, read } = room

  test('if an image name has both a tag and a digest, the image with that digest is pulled', async () => {
    const [old, moved] = ['old', 'new'].map((text) => makeImage({ layers: [layer(file('a', text))] }))
    assert.ok(old && moved)
    const reference = room.registry.put('team/app:1', moved, old)
    const library = open()
    const brought = await bring(library, 'one', from(`${reference}@${old.digest}`))
    assert.deepEqual([brought.digest, read(library, 'one', 'a')], [old.digest, 'old'])
    assert.ok(!room.registry.asked.some((path) => path.endsWith('/manifests/1')))
  })

  test('from an index that also lists attestations and signatures, the image for this machine is pulled', async () => {
    const image = makeImage({ layers: [layer(file('a'))] })
    const attestation = makeArtifact({
      layers: [{ mediaType: 'application/vnd.in-toto+json', digest: image.digest, size: image.manifest.length }],
    })
    const more = {
      annotations: {
        'vnd.docker.reference.type': 'attestation-manifest',
        'vnd.docker.reference.digest': image.digest,
      },
    }
    const index = makeIndex([
      { image: attestation, more: { artifactType: 'application/vnd.dev.sigstore.bundle.v0.3+json' } },
      { image: attestation, os: 'unknown', architecture: 'unknown', more },
      { image, ...ours },
    ])
    const library = open()
    await bring(library, 'one', from(room.registry.put('x:1', index, image, attestation)))
    assert.equal(read(library, 'one', 'a'), 'a')
    assert.ok(!room.registry.asked.some((path) => path.endsWith(attestation.digest)))
    // This index names no platform. Only the configuration of the image names the platform.
    const bare = makeIndex([{ image }])
    await bring(library, 'bare', from(room.registry.put('x:3', bare, image)))
    assert.equal(rootfs(library, 'bare'), rootfs(library, 'one'))
    const alone = makeIndex([{ image: attestation, os: 'unknown', architecture: 'unknown', more }])
    const refused = bring(library, 'two', from(room.registry.put('x:2', alone, attestation)))
    await assert.rejects(refused, { message: /^The image is for no platform; this runner is linux\// })
  })

  test('a registry artifact that is not an image (chart, module) is refused, and the error names its kind', async () => {
    const kinds = {
      'application/vnd.cncf.helm.config.v1+json': {
        config: { mediaType: 'application/vnd.cncf.helm.config.v1+json', digest: `sha256:${'0'.repeat(64)}`, size: 2 },
      },
      'application/vnd.wasm.config.v0+json': {
        config: { mediaType: 'application/vnd.wasm.config.v0+json', digest: `sha256:${'0'.repeat(64)}`, size: 2 },
        layers: [],
      },
      'application/vnd.example.model': { artifactType: 'application/vnd.example.model' },
      'application/vnd.oci.empty.v1+json': { layers: [] },
    }
    for (const [kind, fields] of Object.entries(kinds)) {
      const reference = room.registry.put('chart:1', makeArtifact(fields))
      const sentence = `This is not a container image but another kind of artifact (${kind}).`
      const escaped = sentence.replace(/[.()+]/g, '\\$&')
      await fails('unsupported', new RegExp(`^${escaped}$`), bring(open(), 'one', from(reference)))
    }
    const loose = makeArtifact({ artifactType: 'application/vnd.oci.artifact.manifest.v1+json', config: undefined })
    const refused = bring(open(), 'one', from(room.registry.put('chart:2', loose)))
    await fails('unsupported', /^This is not a container image but/, refused)
  })

  test('if a registry names a separate host for tokens, the image is pulled with a token of that host', async () => {
    const image = makeImage({ layers: [layer(file('a'))] })
    const reference = room.registry.put('team/app:1', image)
    const wanted: (string | undefined)[] = []
    const tokens = createServer((request, response) => {
      wanted.push(`${request.url} ${request.headers.authorization}`)
      response.setHeader('content-type', 'application/json')
      response.end('{"token":"for-this-one","expires_in":300}')
    })
    await once(tokens.listen(0, '127.0.0.2'), 'listening')
    try {
      const { port } = tokens.address() as { port: number }
      const challenge = `Bearer realm="http://127.0.0.2:${port}/token",service="tokens",scope="repository:team/app:pull"`
      room.registry.onRequest = (_path, answer, { headers }) =>
        headers.authorization === 'Bearer for-this-one'
          ? answer
          : { ...answer, status: 401, body: Buffer.from('{}'), headers: { 'www-authenticate': challenge } }
      const authFile = join(room.directory, 'auth.json')
      const auth = Buffer.from('me:secret').toString('base64')
      writeFileSync(authFile, JSON.stringify({ auths: { [room.registry.host]: { auth } } }), { mode: 0o600 })
      const parts = room.parts()
      const library = new Library({ ...parts, registries: { ...parts.registries, authFile }, log: silentLog() })
      await bring(library, 'one', from(reference))
      assert.equal(read(library, 'one', 'a'), 'a')
      assert.match(wanted[0] ?? '', /^\/token\?.*scope=repository%3Ateam%2Fapp%3Apull/)
      assert.ok(wanted.every((each) => each?.endsWith(` Basic ${auth}`)))
    } finally {
      tokens.closeAllConnections()
      tokens.close()
    }
  })

  test('layers compressed as eStargz or zstd:chunked are unpacked like layers of plain gzip or zstd', async () => {
    const tar = layer(file('a'), file('big', randomText(300_000)))
    // An eStargz layer is a sequence of gzip streams. An empty stream at its end contains the position of the table of files.
    const parts = (bytes: Buffer) => {
      const cuts = [0, 512, 1024, 2048, 100_352, bytes.length]
      return cuts.slice(1).map((cut, at) => bytes.subarray(cuts[at], cut))
    }
    const footer = Buffer.from(
      '1f8b08040000000000ff1a00534716003030303030303030303030303030303053544152475a010000ffff0000000000000000',
      'hex',
    )
    const stargz = makeImage({
      layers: [tar],
      pack: (bytes) => Buffer.concat([...parts(bytes).map((part) => gzipSync(part)), footer]),
    })
    const skippable = (content: string) => {
      const head = Buffer.alloc(8)
      head.writeUInt32LE(0x184d2a50)
      head.writeUInt32LE(content.length, 4)
      return Buffer.concat([head, Buffer.from(content)])
    }
    const chunked = makeImage({
      layers: [tar],
      layerKind: 'layer.v1.tar+zstd',
      pack: (bytes) =>
        Buffer.concat([
          ...parts(bytes).map((part) => zstdCompressSync(part, { params: { [constants.ZSTD_c_checksumFlag]: 1 } })),
          skippable('{"version":1,"entries":[]}'),
          skippable('footer'),
        ]),
    })
    for (const [name, image] of Object.entries({ stargz, chunked })) {
      const library = open()
      await bring(library, name, from(room.registry.put(`${name}:1`, image)))
      assert.deepEqual(readdirSync(rootfs(library, name)), ['a', 'big'])
      assert.equal(statSync(join(rootfs(library, name), 'big')).size, 300_000)
    }
  })

  test('a hard link to a lower layer’s file works, even if the link’s layer deletes the original name', async () => {
    const image = makeImage({
      layers: [
        layer(file('tool', 'x', { mode: 0o755, uid: 7 }), file('other')),
        layer({ path: 'twin', type: '1', target: 'tool', mode: 0o755, uid: 7 }),
        layer({ path: 'third', type: '1', target: 'other' }, file('.wh.other', '')),
      ],
    })
    const library = open()
    await bring(library, 'one', from(room.registry.put('x:1', image)))
    const [tool, twin] = ['tool', 'twin'].map((name) => statSync(join(rootfs(library, 'one'), name)))
    assert.deepEqual([tool?.ino === twin?.ino, tool?.nlink], [true, 2])
    assert.deepEqual(
      [read(library, 'one', 'third'), existsSync(join(rootfs(library, 'one'), 'other'))],
      ['other', false],
    )
  })
})
