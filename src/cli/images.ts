// `alcove images renew`: makes the runner of a data directory build the default image again, and prints the progress.
import { setTimeout as delay } from 'node:timers/promises'
import { lackOfDefault } from '#src/runner/images/lack.ts'
import { RenewalFiles } from '#src/runner/images/renewal-files.ts'
import { commandFor } from '#src/up/command-for.ts'
import { Complaint } from '#src/up/complaint.ts'
import { type DataDirectory, findDataDirectory } from '#src/up/data-directory.ts'
import { createDisplay } from '#src/up/display.ts'
import { findRunningUp } from '#src/up/state-file.ts'

const lookEveryMs = 300

/** Returns the progress as text, such as `unpacking the base system: 14 %`. */
export const progressOf = ({ step, percent }: { step?: string; percent?: number }) =>
  step === undefined ? 'begins' : `${step}${percent === undefined ? '' : `: ${percent} %`}`

export const renewImages = async (directory: string): Promise<void> => {
  const data = findDataDirectory(directory)
  if (!data || !findRunningUp(data.stateFile))
    throw new Complaint(`no server or runner is running with the data directory ${directory}`)
  const files = new RenewalFiles(data.runner)
  let request: string
  try {
    request = files.request()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EACCES') throw new Complaint('only root may renew the default image; try again with sudo')
    if (code === 'ENOENT') throw new Complaint('the server has no default image yet; try again once it is ready')
    throw error
  }
  const display = createDisplay(process.stdout)
  for (;;) {
    const { renewal, madeAt } = files.read()
    if (renewal?.request === request) {
      if (renewal.state !== 'running') display.endProgress()
      if (renewal.state === 'failed')
        throw new Complaint(
          `the default image could not be renewed, so the image of ${madeAt} stays in use: ${renewal.reason}`,
        )
      if (renewal.state === 'done') break
      display.progress({ step: renewal.step ?? 'begins', percent: renewal.percent ?? 0 })
    }
    if (!findRunningUp(data.stateFile)) {
      display.endProgress()
      throw new Complaint('the server ended during the renewal; the old image stays in use')
    }
    await delay(lookEveryMs)
  }
  console.log('New sandboxes use the new image. Existing sandboxes keep their image.')
}

/**
 * Returns a sentence about the age of the default image and the progress of its renewal. Undefined if only root may
 * read these.
 */
export const describeDefaultImage = ({ path, runner }: DataDirectory): string | undefined => {
  try {
    const { madeAt, renewal } = new RenewalFiles(runner).read()
    if (madeAt === undefined) return undefined
    const lack = lackOfDefault(runner)
    const again = lack === undefined ? '' : `, ${lack}; to try again: ${commandFor('images renew', path)}`
    const of = `of ${madeAt.slice(0, 10)}${again}`
    if (renewal?.state === 'running') return `${of}; it is being renewed: ${progressOf(renewal)}`
    if (renewal?.state !== 'failed') return of
    const [reason = ''] = (renewal.reason ?? '').split('\n')
    return `${of}; its renewal failed at ${renewal.since}: ${reason}`
  } catch {
    return undefined
  }
}
