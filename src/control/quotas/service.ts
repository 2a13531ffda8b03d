// Reads and checks quotas for other modules. The limits of one sandbox are checked before its row is written. The sums
// over all sandboxes of an organization are checked at the end of the transaction.

export { checkKept, checkLimits, checkOpen, endOfLife, getQuota, getQuotas, type Quota, readTtl } from './limits.ts'
export { checkTotals, mayGrow } from './totals.ts'
