// The functions about runners that other modules may use. Only this module uses its storage.
export { declareLost, hearRegions, listLost, markLost } from './hearing.ts'
export {
  decommission,
  deleteRunnersIn,
  ensureRunner,
  findAnyRunner,
  findDatabaseId,
  findOwnerOfRegion,
  findRunnerByKey,
  findSharedRunner,
  insertRunner,
  listGoneWithSandboxes,
  listRemovers,
  listRunners,
  lockRunner,
  markUnresponsive,
  type RunnerIdentity,
  type RunnerView,
  replaceKey,
  writeDrained,
  writeHeartbeat,
  writeHello,
} from './store.ts'
