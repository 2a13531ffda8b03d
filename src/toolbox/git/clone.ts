import { Problem } from '#src/problems.ts'
import { credentialsOf, optionsFor, originOf, splitUrl } from './credentials.ts'
import type { Git } from './run-git.ts'
import { type CloneRequest, given, type InitRequest } from './schemas.ts'

/** Clones a repository. `home` runs git in the user's home, because the target directory of `repository` may not exist yet. */
export const clone = async (home: Git, repository: Git, body: CloneRequest): Promise<void> => {
  const { url, credentials: fromUrl } = splitUrl(body.url)
  const origin = originOf(url)
  const account = credentialsOf({
    username: given(body.username) ?? fromUrl?.username ?? null,
    password: given(body.password) ?? fromUrl?.password ?? null,
  })
  const { settings = [], env = {} } = optionsFor(account, [url])
  const unverified = body.insecure_skip_tls && origin ? [`http.${origin}.sslVerify=false`] : []
  const options = { settings: [...settings, ...unverified], env }

  const branch = given(body.branch)
  const depth = body.depth ? [`--depth=${body.depth}`] : []
  const chosen = branch === undefined ? [] : [`--branch=${branch}`]
  await home.run(['clone', '--quiet', ...chosen, ...depth, '--', url, body.path], options)

  const commit = given(body.commit_id)
  if (commit === undefined) return
  if ((await repository.ask(['cat-file', '-e', `${commit}^{commit}`])).exitCode !== 0) {
    // The clone lacks the commit: the clone is shallow, or the commit is on no branch. Most servers send a commit by its full id.
    const fetched = await repository.ask(['fetch', '--quiet', ...depth, '--', 'origin', commit], options)
    if (fetched.exitCode !== 0) {
      throw new Problem('not_found', `The repository was cloned, but it has no commit ${commit}.`)
    }
  }
  await repository.run(['checkout', '--quiet', '--detach', commit, '--'])
}

export const init = async (home: Git, { path, bare, initial_branch }: InitRequest): Promise<void> => {
  const branch = given(initial_branch)
  const chosen = branch === undefined ? [] : [`--initial-branch=${branch}`]
  await home.run(['init', '--quiet', ...(bare ? ['--bare'] : []), ...chosen, '--', path])
}
