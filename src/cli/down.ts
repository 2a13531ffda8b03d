// `alcove down`: asks the `up` process of a data directory to stop, and waits until it has stopped.
import { signalProcess, waitUntilGone } from '#src/kit/process-identity.ts'
import { Complaint } from '#src/up/complaint.ts'
import { findDataDirectory } from '#src/up/data-directory.ts'
import { findRunningUp } from '#src/up/state-file.ts'

const patienceMs = 15_000

export const down = async (directory: string): Promise<void> => {
  const data = findDataDirectory(directory)
  const up = data && findRunningUp(data.stateFile)
  if (!up) {
    console.log(`No server or runner is running with the data directory ${directory}.`)
    return
  }
  if (!signalProcess(up, 'SIGTERM') && process.getuid?.() !== 0) {
    throw new Complaint(`process ${up.pid} belongs to another user; try again with sudo`)
  }
  if (!(await waitUntilGone(up, patienceMs))) throw new Complaint(`process ${up.pid} has not ended after 15 s`)
  console.log(`Stopped process ${up.pid}. Sandboxes keep running.`)
}
