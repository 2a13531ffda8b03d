// What other rooms may ask about runners. How the answers are stored is this room's own affair.
export {
  ensureRunner,
  findAnyRunner,
  findOwnerOfRegion,
  findRunnerByKey,
  findSharedRunnerAddress,
  reconcileSnapshots,
} from './store.ts'
