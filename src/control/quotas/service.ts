// Reads and checks quotas for other modules. Limits of one sandbox are checked before its row is written. Sums over all sandboxes
// are checked at the end of the transaction.

export { checkKept, checkLimits, checkOpen, endOfLife, getQuota, getQuotas, type Quota, readTtl } from './limits.ts'
export { checkTotals, mayGrow } from './totals.ts'
