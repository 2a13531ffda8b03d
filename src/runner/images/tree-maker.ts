// Makes the directory of an image's files (its `tree`) from its layers. If possible, the work begins with a copy of an existing
// tree of the lower layers. The image's origin must have a right to that tree (docs/adr/0035).
import { chown, mkdir } from 'node:fs/promises'
import { uidBase } from '../oci/ids.ts'
import type { Blobs } from './blobs.ts'
import type { ImageRecords } from './image-records.ts'
import type { ImageLimits } from './limits.ts'
import type { Tree, Trees, Unfinished } from './trees.ts'
import { type Layer, unpackLayers } from './unpack.ts'

/** Layers whose bytes came from the origin `origin`. Images of this origin may therefore use the files of these layers. */
type Delivered = { origin: string; layers: readonly Layer[] }

type Making = {
  scratch: string
  /** Maximum size of the unpacked files, in bytes. */
  mostBytes: number
  signal: AbortSignal
  /** Called with the share of the bytes that is unpacked so far: a number from 0 to 1. */
  onShare: (share: number) => void
}

type Parts = { records: ImageRecords; trees: Trees; blobs: Blobs; limits: ImageLimits }

type Named = { name: string; tree: Tree }

export const treeOfNothing: Tree = { sizeBytes: 0, diffIds: [], layers: [] }

/** After layers of this many packed bytes, a copy of the unfinished tree is kept. Later images can begin with the copy. */
const segmentBytes = 8 * 1024 ** 2

/**
 * Groups layers for unpacking. Small layers are grouped with later layers, because each call of the unpacking program takes
 * about 0.2 s.
 */
const segmentsOf = (layers: readonly Layer[]): Layer[][] => {
  const segments: Layer[][] = []
  let bytes = segmentBytes
  for (const layer of layers) {
    if (bytes >= segmentBytes) {
      segments.push([])
      bytes = 0
    }
    segments.at(-1)?.push(layer)
    bytes += layer.size
  }
  return segments
}

const bytesOf = (layers: readonly Layer[]) => layers.reduce((sum, { size }) => sum + size, 0)

const beginsWith = (whole: readonly string[], start: readonly string[]) => start.every((each, at) => each === whole[at])

/** Makes the empty root directory of an image. */
export const makeRoot = async ({ rootfs }: Unfinished): Promise<void> => {
  await mkdir(rootfs, { mode: 0o755 })
  await chown(rootfs, uidBase, uidBase)
}

export class TreeMaker {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /**
   * Finds the tree of these layers, if images of `origin` may use that tree. First protects trees from removal (`hold`): that tree,
   * and each tree that has only the lowest of these layers. The protected trees need not exist yet, because `hold` gets only their
   * names.
   */
  find(origin: string, diffIds: readonly string[], hold: (tree: string) => void): Named | undefined {
    const { trees } = this.#parts
    const earlier = trees.earlierNameOf(origin, diffIds)
    const name = trees.nameOf(diffIds)
    hold(earlier)
    for (let count = 0; count <= diffIds.length; count++) hold(trees.nameOf(diffIds.slice(0, count)))
    const mayUse = this.#layersOf(origin).some((whole) => beginsWith(whole, diffIds))
    for (const each of mayUse ? [earlier, name] : [earlier]) {
      const tree = trees.find(each)
      if (tree !== undefined) return { name: each, tree }
    }
    return undefined
  }

  /**
   * Makes the tree of these layers. If the method `#findLower` finds a tree with the lowest of these layers, copies that tree, and
   * unpacks only the layers above.
   */
  async make({ origin, layers }: Delivered, making: Making): Promise<Named> {
    const { trees, blobs, limits } = this.#parts
    const { scratch, mostBytes, signal, onShare } = making
    const diffIds = layers.map(({ diffId }) => diffId)
    const name = trees.nameOf(diffIds)
    const lower = this.#findLower({ origin, layers })
    if (lower?.name === name) return lower
    const rest = layers.slice(lower?.tree.diffIds?.length ?? 0)

    const tree = await trees.making(lower?.name, async (unfinished) => {
      const filesMade = () => trees.filesMade(unfinished)
      if (lower === undefined) await makeRoot(unfinished)
      let [below, present, unpackedBytes] = [lower?.name, lower?.tree, 0]
      for (const segment of trees.isSharing ? segmentsOf(rest) : [rest]) {
        const onWritten = (bytes: number) => onShare((unpackedBytes + bytes) / Math.max(1, bytesOf(rest)))
        onWritten(0)
        const place = { scratch, rootfs: unfinished.rootfs, presentBytes: present?.sizeBytes, filesMade }
        const own = { ...place, layers: segment, mostBytes, limits, signal, onWritten }
        const unpacked = await unpackLayers(blobs.of(origin), own)
        unpackedBytes += bytesOf(segment)
        present = {
          ...unpacked,
          diffIds: diffIds.slice(0, (present?.diffIds?.length ?? 0) + segment.length),
          layers: [...(present?.layers ?? []), ...segment.map(({ digest }) => digest)],
          ...(below === undefined ? {} : { below }),
        }
        const upTo = trees.nameOf(present.diffIds ?? [])
        if (upTo === name) break
        await trees.keepCopy(unfinished, upTo, present)
        below = upTo
      }
      return trees.finish(unfinished, name, present ?? treeOfNothing)
    })
    return { name, tree }
  }

  /**
   * Finds a tree that is made of the lowest of these layers and that images of `origin` may use. Prefers the tree with the most
   * layers.
   */
  #findLower({ origin, layers }: Delivered): Named | undefined {
    const { trees } = this.#parts
    const known = this.#layersOf(origin)
    for (let count = layers.length; count > 0; count--) {
      const diffIds = layers.slice(0, count).map(({ diffId }) => diffId)
      const name = trees.nameOf(diffIds)
      const tree = trees.find(name)
      if (tree === undefined || (count < layers.length && !trees.canBeCopied(name))) continue
      // True if this origin has delivered exactly the compressed layers from which the tree was made.
      const isProven = layers.slice(0, count).every(({ digest }, at) => digest === tree.layers?.[at])
      if (isProven || known.some((whole) => beginsWith(whole, diffIds))) return { name, tree }
    }
    return undefined
  }

  /**
   * For each image of `origin` on this host, returns the diff ids of its layers. The host has downloaded these layers from
   * `origin`. Only this download proves that images of `origin` may use the layers. A list of diff ids proves nothing, because diff
   * ids are not secret.
   */
  #layersOf(origin: string): (readonly string[])[] {
    const { records, trees } = this.#parts
    const own = records.all().filter((record) => record.origin === origin)
    return own.map(({ tree }) => trees.find(tree)?.diffIds ?? [])
  }
}
