// Changes what a sandbox may reach. A runner that has it makes that so at once, for open connections too; in every other
// state it is in force before anything runs again.

import type { Actor } from '#src/control/auth/actor.ts'
import type { SandboxParts } from '#src/control/running.ts'
import type { Sql } from '#src/control/storage/database.ts'
import { noSandbox } from '#src/problems.ts'
import { type NetworkColumns, networkChange } from '../record/network-policy.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import type { NetworkSettings } from '../record/schemas.ts'
import { getSandbox } from '../record/store.ts'

/** A new generation, except for what waits to be recovered or is to be destroyed: that gets one when it is. */
const writeNetwork = async (sql: Sql, id: string, change: Partial<NetworkColumns>, now: Date): Promise<SandboxRow> => {
  const [row] = await sql<SandboxRow[]>`
    with told as (
      select id, case when state <> 'error' and desired_state <> 'destroyed' then 1 else 0 end as anew
      from sandboxes where id = ${id} for update
    )
    update sandboxes set ${sql(change)}, updated_at = ${now}, generation = generation + anew, version = version + anew
    from told where sandboxes.id = told.id and state <> 'destroyed' returning sandboxes.*`
  if (!row) throw noSandbox(id)
  return row
}

export const setNetwork = async (
  { database, clock, changes }: SandboxParts,
  { organization }: Actor,
  idOrName: string,
  settings: NetworkSettings,
): Promise<SandboxRow> => {
  // First whether it is the caller's: a stranger is told nothing of what a policy has to be.
  const sandbox = await getSandbox(database.sql, organization.id, idOrName)
  const change = networkChange(settings)
  const row = await writeNetwork(database.sql, sandbox.id, change, clock.now())
  if (row.generation !== sandbox.generation) changes.renew(row)
  return row
}
