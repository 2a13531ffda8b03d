import type { Snapshot } from './search.ts'

/** A size of the interface, which counts in GiB. Undefined or null: not known yet. */
export const sizeText = (gib: number | null | undefined): string => {
  if (gib === null || gib === undefined) return '–'
  if (gib >= 1) return `${Number(gib.toFixed(1))} GiB`
  const mib = Math.round(gib * 1024)
  return mib >= 1 ? `${mib} MiB` : 'under 1 MiB'
}

/** The resources of a sandbox that is made of the snapshot. */
export const resourcesText = ({ cpu, mem, disk }: Pick<Snapshot, 'cpu' | 'mem' | 'disk'>): string =>
  `${cpu} CPU · ${mem} GiB · ${disk} GiB disk`

const sources: [(snapshot: Snapshot) => boolean, string][] = [
  [({ general }) => general, 'Built into the server'],
  [({ sourceSandboxId }) => sourceSandboxId !== null, 'A sandbox'],
  [({ buildInfo }) => buildInfo !== undefined, 'A Dockerfile'],
]

/** What the snapshot was made of. */
export const sourceText = (snapshot: Snapshot): string =>
  sources.find(([fits]) => fits(snapshot))?.[1] ?? 'An image of a registry'
