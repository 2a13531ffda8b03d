import { Problem } from '#src/problems.ts'
import { problemOf } from './failures.ts'
import type { Git } from './run-git.ts'
import { given, type StoreCredentialsRequest } from './schemas.ts'

type Scope = 'global' | 'local' | 'system'
type Place = { scope?: Scope | '' | null; path?: string | null }

/**
 * Returns the directory where git runs for a scope, and git's option for that scope. Default: the configuration of the user.
 */
export const placeOf = ({ scope, path }: Place): { directory?: string; option: string } => {
  const chosen = given(scope) ?? 'global'
  const repository = given(path)
  if (chosen !== 'local') return { option: `--${chosen}` }
  if (repository === undefined) throw new Problem('bad_request', 'path is needed when scope is local')
  return { option: '--local', directory: repository }
}

/** Reads a setting; `null` if it is not set. Like git, returns the last of several values. */
export const getConfig = async (git: Git, option: string, key: string): Promise<{ value: string | null }> => {
  const answer = await git.ask(['config', option, '-z', '--get', key])
  if (answer.exitCode === 1) return { value: null }
  if (answer.exitCode !== 0) throw problemOf(answer)
  return { value: answer.stdout.subarray(0, -1).toString('utf8') }
}

/** Writes a setting, and replaces all its former values. */
export const setConfig = async (git: Git, option: string, key: string, value: string): Promise<void> => {
  await git.run(['config', option, '--replace-all', key, value])
}

/**
 * Stores a password in plain text in git's own credential store: the file `~/.git-credentials`, which only its owner can read. The
 * SDK calls this `dangerouslyAuthenticate`.
 */
export const storeCredentials = async (home: Git, body: StoreCredentialsRequest): Promise<void> => {
  const protocol = given(body.protocol) ?? 'https'
  const host = given(body.host) ?? 'github.com'
  const fields = { protocol, host, username: body.username, password: body.password }
  const stdin = `${Object.entries(fields)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('')}\n`
  await setConfig(home, '--global', `credential.${protocol}://${host}.helper`, 'store')
  await home.run(['credential-store', 'store'], { stdin })
}
