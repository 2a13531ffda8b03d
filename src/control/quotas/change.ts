// Changes the quotas of an organization, as an operator asks. Fields that are absent or null in the body stay as they
// are.
import { announceCredentialChange, type Callers } from '#src/control/auth/callers.ts'
import { writeOrganizationQuota } from '#src/control/organizations/service.ts'
import type { Parts } from '#src/control/parts.ts'
import { Problem } from '#src/problems.ts'
import type { UpdateOrganizationQuota, UpdateOrganizationRegionQuota } from './schemas.ts'
import { holdRegion, writeRegionQuota } from './store.ts'

type QuotaParts = Pick<Parts, 'database' | 'clock'> & { callers: Callers }

/** Fields for which 0 removes the limit. null leaves a field unchanged. */
const takenAwayByZero = new Set<string>([
  'authenticatedRateLimit',
  'authenticatedRateLimitTtlSeconds',
  'sandboxCreateRateLimit',
  'sandboxCreateRateLimitTtlSeconds',
  'sandboxLifecycleRateLimit',
  'sandboxLifecycleRateLimitTtlSeconds',
])

const takenAwayByZeroInRegion = new Set<string>([
  'maxCpuPerSandbox',
  'maxMemoryPerSandbox',
  'maxDiskPerSandbox',
  'maxDiskPerNonEphemeralSandbox',
  'maxCpuPerGpu',
  'maxMemoryPerGpu',
  'maxDiskPerGpu',
  'maxSandboxLifespan',
])

const columnOf = (field: string) => field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** Returns the database columns that the body changes. For fields in `zeroes`, 0 becomes null, which means no limit. */
const columnsOf = <V>(body: Record<string, V | null | undefined>, zeroes: ReadonlySet<string>) =>
  Object.fromEntries(
    Object.entries(body)
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([field, value]) => [columnOf(field), value === 0 && zeroes.has(field) ? null : (value as V)]),
  )

const noSuchOrganization = () => new Problem('not_found', 'There is no such organization.')

export const changeQuota = async (
  { database, clock, callers }: QuotaParts,
  organizationId: string,
  body: UpdateOrganizationQuota,
): Promise<void> => {
  await database.transaction(async (transaction) => {
    const columns = columnsOf<number>(body, takenAwayByZero)
    if (!(await writeOrganizationQuota(transaction, organizationId, columns, clock.now()))) throw noSuchOrganization()
    await announceCredentialChange(transaction)
  })
  callers.forget()
}

export const changeRegionQuota = async (
  { database, clock }: QuotaParts,
  { organizationId, regionId }: { organizationId: string; regionId: string },
  { sandboxClass = 'container', allowedGpuTypes, ...amounts }: UpdateOrganizationRegionQuota,
): Promise<void> => {
  const given = {
    ...columnsOf<number>(amounts, takenAwayByZeroInRegion),
    ...(allowedGpuTypes ? { allowed_gpu_types: [...new Set(allowedGpuTypes)] } : {}),
  }
  await database.transaction(async (transaction) => {
    const [organization] = await transaction`select 1 from organizations where id = ${organizationId} for key share`
    if (!organization) throw noSuchOrganization()
    if (!(await holdRegion(transaction, organizationId, regionId))) {
      throw new Problem('not_found', 'There is no such region.')
    }
    await writeRegionQuota(transaction, { organizationId, regionId, sandboxClass }, given, clock.now())
  })
}
