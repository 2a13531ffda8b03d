// Tests builds of definitions with RUN in real sandboxes, with a registry on loopback. Needs root; without root the suite is
// skipped.
import assert from 'node:assert/strict'
import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after, before, suite, test } from 'node:test'
import { DirectoryStore } from '#src/runner/archive/directory-store.ts'
import { ContextStore } from '#src/runner/contexts/store.ts'
import { digestOf, type TestImage, tarOf } from '#src/runner/images/testing/oci-image.ts'
import { TestRegistry } from '#src/runner/images/testing/registry.ts'
import { openBuilding } from '#src/runner/testing/building.ts'
import { TestHost } from '#src/runner/testing/test-host.ts'
import { needsRoot } from '#test/needs-root.ts'
import type { AllImages, ToBring } from './all-images.ts'

const isThere = (command: string) => existsSync(`/usr/bin/${command}`)
const skip = needsRoot || (['skopeo', 'umoci'].every(isThere) ? false : 'needs skopeo and umoci')

/** Packs a small image as other builders do: one compressed layer, a configuration and a manifest. */
const packed = (rootfs: string): TestImage => {
  const options = ['--numeric-owner', '--owner=0', '--group=0', '--directory', rootfs]
  const layer = execFileSync('tar', [...options, '--create', '--gzip', '.'], { maxBuffer: 2 ** 28 })
  const plain = execFileSync('gunzip', [], { input: layer, maxBuffer: 2 ** 28 })
  const blobs = new Map<string, Buffer>()
  const add = (bytes: Buffer, kind: string) => {
    blobs.set(digestOf(bytes), bytes)
    return { mediaType: `application/vnd.oci.image.${kind}`, digest: digestOf(bytes), size: bytes.length }
  }
  const one = add(layer, 'layer.v1.tar+gzip')
  const config = { Env: ['PATH=/bin', 'FROM_IMAGE=yes'], User: 'root' }
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch
  const rootfsPart = { type: 'layers', diff_ids: [digestOf(plain)] }
  const described = add(
    Buffer.from(JSON.stringify({ architecture, os: 'linux', config, rootfs: rootfsPart })),
    'config.v1+json',
  )
  const mediaType = 'application/vnd.oci.image.manifest.v1+json'
  const manifest = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, config: described, layers: [one] }))
  return { digest: digestOf(manifest), manifest, blobs, layers: [one.digest] }
}

const fileOfMiB = (path: string) => ({ path, content: Buffer.alloc(2 ** 20, path) })

suite('an image built from a definition with RUN', { skip }, () => {
  let box: TestHost
  let registry: TestRegistry
  let images: AllImages
  let from: string

  const open = async (timeoutMs?: number) => {
    await box.close()
    const opened = await openBuilding(box.instance, box.directory, registry.host, timeoutMs)
    box.use(opened)
    images = opened.images
  }
  before(async () => {
    box = await TestHost.start()
    registry = await TestRegistry.start()
    from = `FROM ${registry.put('small:1', packed(join(box.directory, 'small')))}`
    await open()
  })
  after(async () => {
    await registry[Symbol.asyncDispose]()
    await box[Symbol.asyncDispose]()
  })

  const wanted = (image: string, lines: string[], maxGiB = 1): ToBring => ({
    image,
    target: 'present',
    source: { kind: 'definition', dockerfile: [from, ...lines].join('\n') },
    maxGiB,
  })
  const bring = (assignment: ToBring, signal = new AbortController().signal) =>
    images.bring(assignment, { signal, onProgress: () => {} })
  const leavesNothing = async (image: string) => {
    assert.equal(images.find(image), undefined)
    assert.deepEqual([images.list().includes(image), box.host.list()], [false, []])
    assert.equal(
      (await box.host.templates()).some((template) => template.image === image),
      false,
    )
  }

  test('every sandbox of a built image has the image’s files and the configuration from its definition', async () => {
    const lines = [
      'ENV A=1',
      'RUN echo "$A $FROM_IMAGE" > /root/made; mkdir -m 777 /open',
      'WORKDIR /srv/app',
      'USER daytona',
      'RUN pwd > /open/where; id -u >> /open/where',
    ]
    const known = await bring(wanted('built', lines))
    assert.deepEqual([known.config?.env['A'], known.config?.user, known.config?.workdir], ['1', 'daytona', '/srv/app'])
    assert.equal(images.configOf('built')?.env['FROM_IMAGE'], 'yes')
    assert.deepEqual(box.host.list(), [])
    const made = await Promise.all([1, 2].map(() => box.started({ image: 'built', isNew: true })))
    for (const { sandboxId } of made) {
      const { output } = await box.run(sandboxId, 'cat /root/made /open/where; stat -c %u /srv/app')
      assert.deepEqual(output.split('\n'), ['1 yes', '/srv/app', '1000', '0'])
    }
    // Sizes are not compared: the size of a new image is measured only some time after the build.
    assert.deepEqual({ ...(await bring(wanted('built', lines))), sizeBytes: 0 }, { ...known, sizeBytes: 0 })

    assert.equal(await images.remove('built'), false, 'sandboxes need it')
    await open()
    assert.deepEqual({ ...images.find('built'), sizeBytes: 0 }, { ...known, sizeBytes: 0 })
    for (const { sandboxId } of made) await box.host.destroy(sandboxId)
    assert.equal(await images.remove('built'), true)
    await leavesNothing('built')
  })

  test('a built image reports the smallest disk size that it needs; a start with a smaller disk fails', async () => {
    const known = await bring(wanted('large', ['RUN dd if=/dev/zero of=/big bs=1M count=80']))
    const least = known.leastDiskBytes ?? 0
    assert.ok(least > 70 * 2 ** 20 && least < 80 * 2 ** 20, `${least} bytes`)
    const small = box.assignment({ image: 'large', isNew: true, diskGiB: 0.0625 })
    const message = /^The image needs a disk of at least 0\.07\d GiB, and this one has 0\.0625 GiB\.$/
    await assert.rejects(box.host.start(small), { name: 'NotRecoverable', message })
    await box.host.destroy(small.sandboxId)
    const { sandboxId } = await box.started({ image: 'large', isNew: true, diskGiB: least / 2 ** 30 })
    await box.host.destroy(sandboxId)
    assert.equal(await images.remove('large'), true)
  })

  test('the error of a failed RUN contains the line number, the exit code and the end of the output', async () => {
    const failing = wanted('failing', ['RUN echo kept > /a', 'RUN echo no such thing >&2; exit 3'])
    await assert.rejects(bring(failing), { name: 'ImageFailed', message: 'Line 3: exit code 3\nno such thing' })
    await leavesNothing('failing')
    await assert.rejects(bring(wanted('failing', ['USER nobody-here', 'RUN true'])), /Line 3: there is no such user/)
    await assert.rejects(bring(wanted('failing', ['RUN ["/none"]'])), /Line 2: the program of this line cannot be run/)
    await leavesNothing('failing')
  })

  test('a build of an image that fills its disk fails, and leaves no files', async () => {
    const filling = wanted('filling', ['RUN dd if=/dev/zero of=/big bs=1M count=400 conv=fsync'], 0.125)
    await assert.rejects(bring(filling), /Line 2: exit code 1.*(No space left|quota exceeded)/s)
    await leavesNothing('filling')
  })

  test('a build of an image that is cancelled or exceeds its time limit ends, and leaves no files', async () => {
    const controller = new AbortController()
    const asked = images.bring(wanted('slow', ['RUN sleep 600']), {
      signal: controller.signal,
      onProgress: ({ step }) => step === 'line 2' && controller.abort(),
    })
    await assert.rejects(asked, { name: 'AbortError' })
    await leavesNothing('slow')
    await open(500)
    await assert.rejects(bring(wanted('slow', ['RUN sleep 600'])), /The build took too long/)
    await leavesNothing('slow')
    await open()
  })

  test('a download of a base image ends if the build exceeds its time limit, or another image is missing', async () => {
    const directory = join(box.directory, 'slow')
    mkdirSync(directory)
    writeFileSync(join(directory, 'file'), 'slow')
    const image = packed(directory)
    const slow = registry.put('slow:1', image)
    const { promise: isAsked, resolve: onAsked } = Promise.withResolvers<void>()
    registry.onRequest = async (path, answer, { socket }) => {
      if (path.includes('/none/')) await isAsked
      if (!image.layers.some((layer) => path.endsWith(layer))) return answer
      onAsked()
      // The layer never comes. A download may take half an hour.
      await once(socket, 'close')
      return answer
    }
    const missing = `${registry.host}/none:1`
    const stages = [`FROM ${missing} AS bad`, `FROM ${slow}`, 'COPY --from=bad /x /x']
    await assert.rejects(bring(wanted('one', stages)), /There is no image .*none:1/)
    await leavesNothing('one')
    await open(500)
    await assert.rejects(bring(wanted('two', [`FROM ${slow}`])), /The build took too long/)
    await assert.rejects(bring(wanted('two', [`COPY --from=${slow} /file /file`])), /The build took too long/)
    await leavesNothing('two')
    await open()
  })

  test('a timeout or cancellation ends a build even if a leftover process of a RUN blocks a later COPY', async () => {
    const files = { organizationId: 'o', hash: 'a'.repeat(32) }
    const contexts = new ContextStore(new DirectoryStore(join(box.directory, 'contexts')))
    const tar = tarOf(['go', ...Array.from({ length: 96 }, (_, at) => `big${at}`)].map(fileOfMiB))
    await contexts.put(files, Readable.from([tar]))
    const stopAll = 'until [ -e /to/go ]; do :; done; while :; do kill -STOP -1; done'
    const { source, ...others } = wanted('stopped', [`RUN (${stopAll}) >/dev/null 2>&1 &`, 'COPY go big* /to/'])
    assert.ok(source.kind === 'definition')
    const stopped: ToBring = {
      ...others,
      source: { ...source, contexts: { organizationId: files.organizationId, hashes: [files.hash] } },
    }
    await open(2000)
    await assert.rejects(bring(stopped), {
      name: 'ImageFailed',
      message: /^The build took too long: it was not finished after /,
    })
    await leavesNothing('stopped')
    await open()
    const controller = new AbortController()
    const asked = images.bring(stopped, {
      signal: controller.signal,
      onProgress: ({ step }) => step === 'line 3' && setTimeout(() => controller.abort(), 500),
    })
    await assert.rejects(asked, { name: 'AbortError' })
    await leavesNothing('stopped')
  })

  test('if a runner is killed during a build, no files are left and the next runner can build the image', async () => {
    const assignment = wanted('killed', ['RUN echo one > /one', 'RUN sleep 1; echo two > /two'])
    for (const at of ['line 2', 'line 3']) {
      await box.close()
      const killable = fork(join(import.meta.dirname, '../testing/killable-builder-program.ts'), [
        box.instance,
        box.directory,
        registry.host,
      ])
      killable.send(assignment)
      for (;;) {
        const [said] = await once(killable, 'message')
        if (said === at) break
      }
      killable.kill('SIGKILL')
      await once(killable, 'exit')
      await open()
      await leavesNothing('killed')
    }
    await bring(assignment)
    const { sandboxId } = await box.started({ image: 'killed', isNew: true })
    assert.equal((await box.run(sandboxId, 'cat /one /two')).output, 'one\ntwo')
  })
})
