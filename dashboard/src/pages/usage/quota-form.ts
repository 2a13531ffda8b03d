// Turns quotas into the fields of a form, and the changed fields into a request body.
export type QuotaField = {
  name: string
  label: string
  hint?: string
  /** Whether this limit can be removed. The API takes 0 as "no limit". */
  canBeAbsent?: true
}

export const organizationFields: readonly QuotaField[] = [
  { name: 'snapshotQuota', label: 'Snapshots' },
  { name: 'volumeQuota', label: 'Volumes' },
  { name: 'secretQuota', label: 'Secrets' },
  { name: 'maxSecretsPerSandbox', label: 'Secrets of one sandbox' },
  { name: 'maxCpuPerSandbox', label: 'CPU of one sandbox (cores)' },
  { name: 'maxMemoryPerSandbox', label: 'Memory of one sandbox (GiB)' },
  { name: 'maxDiskPerSandbox', label: 'Disk of one sandbox (GiB)' },
  { name: 'snapshotDeactivationTimeoutMinutes', label: 'Snapshots are deactivated after unused minutes' },
  { name: 'authenticatedRateLimit', label: 'Calls in a period', canBeAbsent: true },
  { name: 'authenticatedRateLimitTtlSeconds', label: 'Period of calls (seconds)', canBeAbsent: true },
  { name: 'sandboxCreateRateLimit', label: 'New sandboxes in a period', canBeAbsent: true },
  { name: 'sandboxCreateRateLimitTtlSeconds', label: 'Period of new sandboxes (seconds)', canBeAbsent: true },
  { name: 'sandboxLifecycleRateLimit', label: 'Starts, stops and changes in a period', canBeAbsent: true },
  {
    name: 'sandboxLifecycleRateLimitTtlSeconds',
    label: 'Period of starts, stops and changes (seconds)',
    canBeAbsent: true,
  },
]

const none = 'Empty: the limit of the organization'
export const regionFields: readonly QuotaField[] = [
  { name: 'totalCpuQuota', label: 'CPU (cores)' },
  { name: 'totalMemoryQuota', label: 'Memory (GiB)' },
  { name: 'totalDiskQuota', label: 'Disk (GiB)' },
  { name: 'maxCpuPerSandbox', label: 'CPU of one sandbox (cores)', hint: none, canBeAbsent: true },
  { name: 'maxMemoryPerSandbox', label: 'Memory of one sandbox (GiB)', hint: none, canBeAbsent: true },
  { name: 'maxDiskPerSandbox', label: 'Disk of one sandbox (GiB)', hint: none, canBeAbsent: true },
  {
    name: 'maxDiskPerNonEphemeralSandbox',
    label: 'Disk of a sandbox that is kept after it stops (GiB)',
    hint: 'Empty: no limit of its own',
    canBeAbsent: true,
  },
]

export type Typed = Record<string, string>

/** What the fields show when the form opens. A limit that does not exist is shown as an empty field. */
export const typedOf = (fields: readonly QuotaField[], values: Readonly<Record<string, unknown>>): Typed =>
  Object.fromEntries(fields.map(({ name }) => [name, values[name] == null ? '' : String(values[name])]))

/** Returns the changed fields in the form of the API. Throws an error for the user if a text is not a whole number. */
export const changedOf = (fields: readonly QuotaField[], before: Typed, typed: Typed): Record<string, number> =>
  Object.fromEntries(
    fields
      .filter(({ name }) => typed[name]?.trim() !== before[name])
      .map(({ name, label, canBeAbsent }) => {
        const text = typed[name]?.trim() ?? ''
        if (text === '' && canBeAbsent) return [name, 0]
        if (!/^\d{1,10}$/.test(text)) throw new Error(`“${label}” must be a whole number.`)
        return [name, Number(text)]
      }),
  )
