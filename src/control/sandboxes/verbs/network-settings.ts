// Changes which networks a sandbox may reach. If the sandbox runs, its runner applies the policy immediately, also to open
// connections. Otherwise the policy is applied before the next start.

import type { Actor } from '#src/control/auth/actor.ts'
import type { RunningParts } from '#src/control/running.ts'
import { networkChange } from '../record/network-policy.ts'
import { writeNetwork } from '../record/notes.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import type { NetworkSettings } from '../record/schemas.ts'
import { getSandbox } from '../record/store.ts'
import { untilTaken } from './wait.ts'

/**
 * Changes a sandbox's network policy, and waits until the runner of a started sandbox has applied the policy. Returns the written
 * row if the runner has no link to this process, or does not answer in time.
 */
export const setNetwork = async (
  parts: RunningParts,
  { organization }: Actor,
  idOrName: string,
  settings: NetworkSettings,
): Promise<SandboxRow> => {
  const { database, clock, changes, options } = parts
  // The sandbox is looked up first, so that a caller who may not see the sandbox gets 404, and no message about a wrong policy.
  const sandbox = await getSandbox(database.sql, organization.id, idOrName)
  const change = networkChange(settings)
  const row = await writeNetwork(database.sql, sandbox.id, change, clock.now())
  if (row.generation === sandbox.generation) return row
  // `untilTaken` is called before the runner gets the new policy. Otherwise the function could miss the runner's report.
  const applied = row.state === 'started' ? untilTaken(parts, row, options.createWaitSeconds * 1000) : row
  changes.renew(row)
  return await applied
}
