import { Problem } from '#src/problems.ts'
import { fileList, type Git, recordsOf } from './run-git.ts'
import {
  type AddRequest,
  type CommitInfo,
  type CommitRequest,
  given,
  type ResetRequest,
  type RestoreRequest,
} from './schemas.ts'

export const add = async (git: Git, { files }: AddRequest): Promise<void> => {
  const list = fileList(files)
  await git.run(['add', ...list.args], list.options)
}

export const commit = async (git: Git, body: CommitRequest): Promise<{ hash: string }> => {
  const who = {
    GIT_AUTHOR_NAME: body.author,
    GIT_AUTHOR_EMAIL: body.email,
    GIT_COMMITTER_NAME: body.author,
    GIT_COMMITTER_EMAIL: body.email,
  }
  const empty = body.allow_empty ? ['--allow-empty'] : []
  // A line that starts with `#` stays in the commit message, whatever the sandbox's git configuration says.
  const args = ['commit', '--quiet', '--cleanup=whitespace', ...empty, '--file=-']
  await git.run(args, { env: who, stdin: body.message })
  const { stdout } = await git.run(['rev-parse', '--verify', 'HEAD'])
  return { hash: stdout.toString('utf8').trim() }
}

/** Maximum number of commits in a history, newest first. A caller that wants older commits runs `git log`. */
export const historyLength = 1000

const fields = ['%H', '%an', '%ae', '%aI', '%B']

const readHistory = (stdout: Buffer): CommitInfo[] => {
  const texts = recordsOf(stdout, '\0')
  const commits: CommitInfo[] = []
  for (let at = 0; at + fields.length < texts.length; at += fields.length) {
    const [hash, author, email, timestamp, message] = texts.slice(at, at + fields.length) as [
      string,
      string,
      string,
      string,
      string,
    ]
    commits.push({ hash, author, email, timestamp, message: message.trimEnd() })
  }
  return commits
}

/** Lists commits, newest first. The list is empty for a branch without a commit. */
export const listHistory = async (git: Git): Promise<CommitInfo[]> => {
  await git.run(['rev-parse', '--git-dir'])
  if ((await git.ask(['rev-parse', '--quiet', '--verify', 'HEAD'])).exitCode !== 0) return []
  const format = `--format=tformat:${fields.join('%x00')}`
  const shape = ['-z', '--encoding=UTF-8', '--no-show-signature', '--no-patch', format]
  return readHistory((await git.run(['log', ...shape, `--max-count=${historyLength}`, 'HEAD', '--'])).stdout)
}

export const reset = async (git: Git, body: ResetRequest): Promise<void> => {
  const mode = given(body.mode) ?? 'mixed'
  const target = given(body.target)
  const revision = target === undefined ? [] : [target]
  if (!body.files?.length) {
    await git.run(['reset', '--quiet', `--${mode}`, ...revision, '--'])
    return
  }
  if (mode !== 'mixed') throw new Problem('bad_request', 'body.files can be used with body.mode mixed only')
  const list = fileList(body.files)
  await git.run(['reset', '--quiet', ...list.args, ...revision, '--'], list.options)
}

/** Restores files. Default: restores the work tree only. */
export const restore = async (git: Git, body: RestoreRequest): Promise<void> => {
  const list = fileList(body.files)
  const source = given(body.source)
  const places = [...(body.staged ? ['--staged'] : []), ...(body.worktree ? ['--worktree'] : [])]
  const from = source === undefined ? [] : [`--source=${source}`]
  await git.run(['restore', '--quiet', ...places, ...from, ...list.args], list.options)
}
