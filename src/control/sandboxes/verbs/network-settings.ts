// Changes which networks a sandbox may reach. A runner that has the sandbox applies the policy immediately, also to
// open connections. If the sandbox does not run, the policy is applied before its next start.

import type { Actor } from '#src/control/auth/actor.ts'
import type { RunningParts } from '#src/control/running.ts'
import { networkChange } from '../record/network-policy.ts'
import { writeNetwork } from '../record/notes.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import type { NetworkSettings } from '../record/schemas.ts'
import { getSandbox } from '../record/store.ts'

export const setNetwork = async (
  { database, clock, changes }: RunningParts,
  { organization }: Actor,
  idOrName: string,
  settings: NetworkSettings,
): Promise<SandboxRow> => {
  // Access is checked before the policy. A caller who may not see the sandbox therefore gets 404, and no message about
  // the policy.
  const sandbox = await getSandbox(database.sql, organization.id, idOrName)
  const change = networkChange(settings)
  const row = await writeNetwork(database.sql, sandbox.id, change, clock.now())
  if (row.generation !== sandbox.generation) changes.renew(row)
  return row
}
