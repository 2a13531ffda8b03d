// Functions about quotas, for other modules: the limits of one sandbox before a write, and the check of totals at the
// end of the transaction.

export { checkKept, checkLimits, checkOpen, endOfLife, getQuota, getQuotas, type Quota, readTtl } from './limits.ts'
export { checkTotals, mayGrow } from './totals.ts'
