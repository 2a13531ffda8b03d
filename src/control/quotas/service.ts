// What other rooms ask about quotas: before they write, what one sandbox may have; as the last of a transaction, whether it
// is too much in all.

export { checkKept, checkLimits, checkOpen, endOfLife, getQuota, getQuotas, type Quota, readTtl } from './limits.ts'
export { checkTotals, mayGrow } from './totals.ts'
