// The secrets of one sandbox. For each secret, an environment variable of the sandbox contains the secret's
// placeholder.
import { Problem } from '#src/problems.ts'
import { trustVariables } from '#src/wire/secrets.ts'
import type { Parts } from '../parts.ts'
import type { Organization } from '../people/organization.ts'
import type { MountedSecret } from '../sandboxes/record/columns.ts'
import type { Transaction } from '../storage/database.ts'
import { ensureAuthority } from './authority.ts'
import { holdSecrets } from './store.ts'

/** Maps each environment variable to the name of the secret whose placeholder it gets. */
export type AskedSecrets = ReadonlyMap<string, string>

/**
 * Environment variables that must not get a placeholder: without their values, no command would start or no secret
 * would work.
 */
const neededVariables: ReadonlySet<string> = new Set(['PATH', 'HOME', 'LD_PRELOAD', ...Object.keys(trustVariables)])

/**
 * Reads `secrets` of a request: `[{VARIABLE: name of the secret}, …]`. Throws 400 for an invalid, reserved or repeated
 * variable.
 */
export const readSecrets = (given: readonly Readonly<Record<string, string>>[]): AskedSecrets => {
  const entries = given.flatMap((each) => Object.entries(each))
  const asked = new Map(entries)
  for (const [variable] of entries) {
    const shown = `"${variable.slice(0, 60)}"`
    if (!/^[A-Za-z_][A-Za-z0-9_]{0,254}$/.test(variable))
      throw new Problem('bad_request', `secrets has ${shown}, which is not the name of a variable`)
    if (neededVariables.has(variable))
      throw new Problem('bad_request', `secrets has ${shown}, which programs in the sandbox need; use another variable`)
  }
  if (asked.size < entries.length) throw new Problem('bad_request', 'secrets has the same variable twice')
  return asked
}

export type HeldSecrets = { secrets: MountedSecret[]; secret_authority: string | null }

/** Locks the secrets, so that none of them is deleted before the transaction ends. Throws 400 for an unknown secret. */
export const mountSecrets = async (
  parts: Pick<Parts, 'encryption' | 'clock'>,
  transaction: Transaction,
  organization: Pick<Organization, 'id' | 'maxSecretsPerSandbox'>,
  asked: AskedSecrets,
): Promise<HeldSecrets> => {
  if (asked.size === 0) return { secrets: [], secret_authority: null }
  const most = organization.maxSecretsPerSandbox
  if (asked.size > most)
    throw new Problem('bad_request', `secrets has ${asked.size} entries; a sandbox can have at most ${most}`)
  const found = await holdSecrets(transaction, organization.id, [...new Set(asked.values())])
  const secrets = [...asked].map(([variable, name]) => {
    const secret = found.find((each) => each.name === name)
    if (secret === undefined)
      throw new Problem(
        'bad_request',
        `There is no secret "${name.slice(0, 128)}": create it first, and give its name here.`,
      )
    return { variable, secretId: secret.id, placeholder: secret.placeholder }
  })
  return { secrets, secret_authority: await ensureAuthority(parts, transaction, organization.id) }
}
