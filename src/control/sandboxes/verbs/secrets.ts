// Replaces the secrets of a sandbox. In a running sandbox, new processes have the new secrets within moments. Processes that run
// already keep their variables.

import type { Actor } from '#src/control/auth/actor.ts'
import { checkNotSuspended } from '#src/control/people/organization.ts'
import type { RunningParts } from '#src/control/running.ts'
import { mountSecrets, readSecrets } from '#src/control/secrets/mounting.ts'
import { writeSecrets } from '../record/notes.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import type { SandboxSecrets } from '../record/schemas.ts'
import { getSandbox, lockSandbox } from '../record/store.ts'

export const setSecrets = async (
  parts: RunningParts,
  actor: Actor,
  idOrName: string,
  body: SandboxSecrets,
): Promise<SandboxRow> => {
  checkNotSuspended(parts, actor)
  const { database, clock, changes } = parts
  const { organization } = actor
  // Access is checked before the secrets, so that a caller who may not see the sandbox gets 404.
  const { id } = await getSandbox(database.sql, organization.id, idOrName)
  const asked = readSecrets(body.secrets)
  const row = await database.transaction(async (transaction) => {
    // Secrets are locked before sandboxes, as when a secret is deleted. The equal order prevents deadlocks.
    const held = await mountSecrets(parts, transaction, organization, asked)
    const sandbox = await lockSandbox(transaction, id)
    return await writeSecrets(transaction, sandbox, held, clock.now())
  })
  changes.renew(row)
  return row
}
