// Turns the secrets of a sandbox into rows of a form: an environment variable, and the name of the secret for it. In the sandbox,
// the variable contains a placeholder.
import type { BodyOf, Sandbox } from '../../../api/client.ts'

/** A row of the form, with one secret. `id` stays the same while the user edits the row. */
export type SecretRow = { id: number; variable: string; name: string }

type Known = { id: string; name: string }

/** The rows for a sandbox's secrets. A secret that is not in `known` is shown by its id. */
export const secretRowsOf = (held: Sandbox['secrets'], known: readonly Known[]): SecretRow[] =>
  (held ?? []).map(({ variable, secretId }, id) => ({
    id,
    variable,
    name: known.find((secret) => secret.id === secretId)?.name ?? secretId,
  }))

export const secretsProblem = (rows: readonly SecretRow[]): string | undefined => {
  const variables = rows.map(({ variable }) => variable)
  if (rows.some(({ variable, name }) => variable === '' || name === ''))
    return 'Each row needs a variable and a secret. Remove the rows that you do not need.'
  const twice = variables.find((variable, index) => variables.indexOf(variable) < index)
  return twice === undefined ? undefined : `The variable "${twice.slice(0, 60)}" is used twice.`
}

export const secretsBody = (rows: readonly SecretRow[]): BodyOf<'/sandbox/{sandboxIdOrName}/secrets', 'put'> => ({
  secrets: rows.map(({ variable, name }) => ({ [variable]: name })),
})
