import { Problem } from '#src/problems.ts'
import { problemOf } from './failures.ts'
import { type Git, recordsOf } from './run-git.ts'
import type { BranchList } from './schemas.ts'

const heads = 'refs/heads/'

/** Finds the current branch, even if it has no commit yet; `undefined` if HEAD is detached. */
export const findCurrentBranch = async (git: Git): Promise<string | undefined> => {
  const answer = await git.ask(['symbolic-ref', '--quiet', 'HEAD'])
  if (answer.exitCode === 1) return undefined
  if (answer.exitCode !== 0) throw problemOf(answer)
  const name = answer.stdout.toString('utf8').trimEnd()
  return name.startsWith(heads) ? name.slice(heads.length) : name
}

export const getCurrentBranch = async (git: Git): Promise<string> => {
  const branch = await findCurrentBranch(git)
  if (branch === undefined) throw new Problem('bad_request', 'HEAD is detached: name a branch.')
  return branch
}

export const listBranches = async (git: Git): Promise<BranchList> => {
  const current = await findCurrentBranch(git)
  const { stdout } = await git.run(['for-each-ref', '--format=%(refname)', heads])
  const names = recordsOf(stdout, '\n').filter(Boolean)
  return { branches: names.map((name) => name.slice(heads.length)), current: current ?? '' }
}

/** Creates a branch at HEAD without switching to it. The function `checkout` switches. */
export const createBranch = async (git: Git, name: string): Promise<void> => {
  await git.run(['branch', '--no-track', '--', name])
}

/** Deletes a branch, even an unmerged one, because the caller named it. Git refuses to delete the current branch. */
export const deleteBranch = async (git: Git, name: string): Promise<void> => {
  await git.run(['branch', '--quiet', '-D', '--', name])
}

/** Checks out a local branch, a branch of the only remote that has it, or any other revision, which detaches HEAD. */
export const checkout = async (git: Git, branch: string): Promise<void> => {
  await git.run(['checkout', '--quiet', branch, '--'])
}
