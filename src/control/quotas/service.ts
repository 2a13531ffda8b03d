// What other rooms ask about quotas: before a write, the limits of one sandbox; last in the transaction, whether the total is
// exceeded.

export { checkKept, checkLimits, checkOpen, endOfLife, getQuota, getQuotas, type Quota, readTtl } from './limits.ts'
export { checkTotals, mayGrow } from './totals.ts'
