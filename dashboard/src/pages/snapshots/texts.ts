import type { Snapshot } from './search.ts'

/** A size in GiB as a text. A dash if the size is not known yet (undefined or null). */
export const sizeText = (gib: number | null | undefined): string => {
  if (gib === null || gib === undefined) return '–'
  if (gib >= 1) return `${Number(gib.toFixed(1))} GiB`
  const mib = Math.round(gib * 1024)
  return mib >= 1 ? `${mib} MiB` : 'under 1 MiB'
}

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
