// Measures how long pulls of images that share layers take, and how much disk the images use. Measures `podman pull` in the same
// run. The images come from a registry on loopback. `node bench/pulls.ts [images] [MiB of the shared base]`, as root.
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { silentLog } from '#src/kit/log.ts'
import { removeTree } from '#src/kit/remove-tree.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { unmountImagePool } from '#src/runner/images/image-pool.ts'
import { Library } from '#src/runner/images/library.ts'
import { standardLimits } from '#src/runner/images/limits.ts'
import { makeImage, type TestImage, tarOf } from '#src/runner/images/testing/oci-image.ts'
import { TestRegistry } from '#src/runner/images/testing/registry.ts'
import { compare, keep, type Samples, timed } from './samples.ts'

const count = Number(process.argv[2] ?? 12)
const baseMebibytes = Number(process.argv[3] ?? 96)
const MiB = 1024 ** 2
const timeoutMs = 600_000

/** Makes a layer with files of 64 KiB each. Compression halves their size. */
const layerOf = (name: string, mebibytes: number) =>
  tarOf(
    Array.from({ length: mebibytes * 16 }, (_, at) => ({
      path: `${name}/${at}`,
      content: Buffer.concat([randomBytes(32 * 1024), Buffer.alloc(32 * 1024, at)]),
    })),
  )

/** All images share the first layer, and groups of four images the second. Each image has a third layer of its own. */
const makeImages = (): TestImage[] => {
  const base = layerOf('base', baseMebibytes)
  const installed = Array.from({ length: Math.ceil(count / 4) }, (_, at) =>
    layerOf(`installed-${at}`, baseMebibytes / 2),
  )
  return Array.from({ length: count }, (_, at) =>
    makeImage({ layers: [base, installed[Math.floor(at / 4)] as Buffer, layerOf(`own-${at}`, baseMebibytes / 8)] }),
  )
}

const bytesIn = async (directory: string) => Number.parseInt(await runCommand(['du', '-sx', '-B1', directory]), 10)

const place = await mkdtemp('/var/tmp/alcove-bench-pulls-')
const registry = await TestRegistry.start()
const podman = (...args: string[]) => {
  const where = ['--root', join(place, 'podman'), '--runroot', join(place, 'podman-run'), '--storage-driver', 'overlay']
  return runCommand(['podman', ...where, ...args], { timeoutMs })
}

const pullAll = async (references: readonly string[], pull: (reference: string, at: number) => Promise<unknown>) => {
  const samples: Samples = []
  for (const [at, reference] of references.entries()) samples.push(await timed(() => pull(reference, at)))
  return samples
}

const alcove = async (name: string, references: readonly string[]) => {
  const poolDir = join(place, name)
  const publicNetwork = () => Promise.reject(new Error('nothing here is on the Internet'))
  const registries = { plainRegistries: [registry.host], authFile: undefined, publicNetwork }
  const library = new Library({
    poolDir,
    filesDir: undefined,
    registries,
    limits: standardLimits,
    log: silentLog(),
    sharesLayers: true,
  })
  registry.asked.length = 0
  const samples = await pullAll(references, (reference, at) =>
    library.bring({ image: `image-${at}`, source: { kind: 'registry', reference }, maxGiB: 10 }),
  )
  const blobs = registry.asked.filter((path) => path.includes('/blobs/')).length
  const images = join(poolDir, 'image-pool.img')
  const trees = await bytesIn(existsSync(images) ? images : join(poolDir, 'image-trees'))
  await library.close()
  return { samples, blobs, bytes: { trees, layers: await bytesIn(join(poolDir, 'image-layers')) } }
}

const removeLibrary = async (name: string) => {
  await unmountImagePool(join(place, name))
  await removeTree(join(place, name))
}

try {
  const images = makeImages()
  const packed = images.map(({ blobs }) => [...blobs.values()].reduce((sum, { length }) => sum + length, 0))
  const tags = images.map((image, at) => registry.put(`bench/one:${at}`, image))
  const repositories = images.map((image, at) => registry.put(`bench/image-${at}:1`, image))

  const oneRepository = await alcove('one', tags)
  await removeLibrary('one')
  const manyRepositories = await alcove('many', repositories)
  await removeLibrary('many')
  registry.asked.length = 0
  const hasPodman = existsSync('/usr/bin/podman')
  const pulled = hasPodman
    ? await pullAll(repositories, (reference) => podman('pull', '--quiet', '--tls-verify=false', reference))
    : []
  const podmanBlobs = registry.asked.filter((path) => path.includes('/blobs/')).length
  const podmanBytes = hasPodman ? await bytesIn(join(place, 'podman')) : 0

  const peer = hasPodman ? { name: 'podman pull', samples: pulled } : undefined
  console.log(`${count} images of ${Math.round((packed[0] ?? 0) / MiB)} MiB packed, base ${baseMebibytes} MiB unpacked`)
  console.log(compare('tags of one repository', oneRepository.samples, peer))
  console.log(compare('a repository each', manyRepositories.samples, peer))
  if (hasPodman) console.log(compare('podman pull', pulled))
  const inMiB = (bytes: number) => `${Math.round(bytes / MiB)} MiB`
  for (const [name, { bytes, blobs }] of Object.entries({ oneRepository, manyRepositories }))
    console.log(`${name}: trees ${inMiB(bytes.trees)}, layers ${inMiB(bytes.layers)}, ${blobs} blobs asked for`)
  if (hasPodman) console.log(`podman: ${inMiB(podmanBytes)}, ${podmanBlobs} blobs asked for`)
  const peerFacts = hasPodman ? { samples: pulled, bytes: podmanBytes, blobs: podmanBlobs } : undefined
  console.log(keep('pulls', { count, baseMebibytes, packed, oneRepository, manyRepositories, podman: peerFacts }))
} finally {
  await registry[Symbol.asyncDispose]()
  if (existsSync('/usr/bin/podman')) await podman('rmi', '--all', '--force').catch(() => {})
  await runCommand(['sh', '-c', `umount -l ${join(place, 'podman/overlay')} 2>/dev/null || :`])
  for (const name of ['one', 'many']) await removeLibrary(name)
  await removeTree(place)
}
