import type { Organization } from '#src/control/organizations/organization.ts'
import { Problem } from '#src/problems.ts'

export type Size = { cpu: number; memoryGiB: number; diskGiB: number }

/** What one sandbox of the organization may have at most. */
export const checkLimits = ({ cpu, memoryGiB, diskGiB }: Size, organization: Organization): void => {
  const over = [
    ['cpu', cpu, organization.maxCpuPerSandbox, ''],
    ['memory', memoryGiB, organization.maxMemoryPerSandbox, ' GiB'],
    ['disk', diskGiB, organization.maxDiskPerSandbox, ' GiB'],
  ] as const
  const said = over
    .filter(([, wanted, most]) => wanted > most)
    .map(
      ([name, wanted, most, unit]) =>
        `${name} ${wanted}${unit} is more than the ${most}${unit} that a sandbox may have`,
    )
  if (said.length > 0) throw new Problem('forbidden', said.join(', '))
}
