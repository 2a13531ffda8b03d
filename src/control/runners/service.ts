// What other rooms may ask about runners. How the answers are stored is this room's own affair.
export {
  ensureRunner,
  findAnyRunner,
  findDatabaseId,
  findOwnerOfRegion,
  findRunnerByKey,
  findSharedRunnerAddress,
  type RunnerIdentity,
  reconcileSnapshots,
  writeHeartbeat,
  writeHello,
} from './store.ts'
