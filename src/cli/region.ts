// `alcove region`: the operator's settings of the server's regions.
import { askServer } from './ask-server.ts'

/** Sets whether the disks of a region's stopped sandboxes are saved in the object store. */
export const saveStopped = async (directory: string, id: string, savesStopped: boolean): Promise<void> => {
  await askServer(directory, 'PATCH', `/shared-regions/${encodeURIComponent(id)}`, { savesStopped })
  console.log(
    savesStopped
      ? `Stopped sandboxes of ${id} are saved in the archive store.`
      : `Stopped sandboxes of ${id} are no longer saved. Existing saves stay until they are replaced or deleted.`,
  )
}
