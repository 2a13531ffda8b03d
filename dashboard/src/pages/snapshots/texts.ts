import { sizeText } from '../../ui/size-text.ts'
import type { Snapshot } from './search.ts'

/** The size of the snapshot's image, such as "256 MiB". A dash while it is not known. */
export const imageSizeText = ({ size }: Pick<Snapshot, 'size'>): string => sizeText(size && size * 1024 ** 3)

/** The processors, memory and disk of a sandbox that is made from the snapshot. */
export const resourcesText = ({ cpu, mem, disk }: Pick<Snapshot, 'cpu' | 'mem' | 'disk'>): string =>
  `${cpu} CPU · ${mem} GiB · ${disk} GiB disk`

const sources: [(snapshot: Snapshot) => boolean, string][] = [
  [({ general }) => general, 'Built into the server'],
  [({ sourceSandboxId }) => sourceSandboxId !== null, 'A sandbox'],
  [({ buildInfo }) => buildInfo !== undefined, 'A Dockerfile'],
]

/** Says from what the snapshot was made: an image, a Dockerfile or a sandbox. Some snapshots come with the server. */
export const sourceText = (snapshot: Snapshot): string =>
  sources.find(([fits]) => fits(snapshot))?.[1] ?? 'An image of a registry'
