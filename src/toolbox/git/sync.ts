// Pull and push: the calls that take credentials for an already configured remote.
import { Problem } from '#src/problems.ts'
import { findCurrentBranch, getCurrentBranch } from './branches.ts'
import { credentialsOf, optionsFor } from './credentials.ts'
import { problemOf } from './failures.ts'
import { getUrls } from './remotes.ts'
import type { Git } from './run-git.ts'
import { given, type PullRequest, type PushRequest } from './schemas.ts'

const findSetting = async (git: Git, key: string): Promise<string | undefined> => {
  const { exitCode, stdout } = await git.ask(['config', '--get', key])
  return exitCode === 0 ? stdout.toString('utf8').trimEnd() : undefined
}

/**
 * Chooses the branch to pull. Default: the upstream of the current branch; without an upstream, the branch of the same name at
 * origin.
 */
const chooseSource = async (git: Git, body: PullRequest): Promise<{ remote: string; branches: string[] }> => {
  const branch = given(body.branch)
  if (branch !== undefined) return { remote: given(body.remote) ?? 'origin', branches: [`refs/heads/${branch}`] }
  const current = await findCurrentBranch(git)
  const upstream = current === undefined ? undefined : await findSetting(git, `branch.${current}.remote`)
  const remote = given(body.remote) ?? upstream ?? 'origin'
  if (upstream === remote) return { remote, branches: [] }
  return { remote, branches: [`refs/heads/${current ?? (await getCurrentBranch(git))}`] }
}

const hasConflicts = async (git: Git) => (await git.ask(['ls-files', '--unmerged'])).stdout.length > 0

/** Fetches and merges. If there is a conflict, it stays in the work tree, as git leaves it, and the caller resolves it. */
export const pull = async (git: Git, body: PullRequest): Promise<void> => {
  const { remote, branches } = await chooseSource(git, body)
  const options = optionsFor(credentialsOf(body), await getUrls(git, remote, 'fetch'))
  const answer = await git.ask(['pull', '--quiet', '--no-rebase', '--no-edit', '--', remote, ...branches], options)
  if (answer.exitCode === 0) return
  if (await hasConflicts(git)) throw new Problem('git_merge_conflict')
  throw problemOf(answer)
}

/** Pushes a branch to the remote branch of the same name. */
export const push = async (git: Git, body: PushRequest): Promise<void> => {
  const branch = given(body.branch) ?? (await getCurrentBranch(git))
  const remote = given(body.remote) ?? 'origin'
  const options = optionsFor(credentialsOf(body), await getUrls(git, remote, 'push'))
  const upstream = body.set_upstream ? ['--set-upstream'] : []
  const refspec = `refs/heads/${branch}:refs/heads/${branch}`
  await git.run(['push', '--porcelain', ...upstream, '--', remote, refspec], options)
}
