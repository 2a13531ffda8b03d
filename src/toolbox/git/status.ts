// `git status` in the words of the API, parsed from git's machine format (git-status(1), porcelain v2 with -z).
import { type Git, recordsOf } from './run-git.ts'
import type { FileStatus, Status, StatusWord } from './schemas.ts'

const words: Record<string, StatusWord> = {
  '.': 'Unmodified',
  M: 'Modified',
  // `T`: the type of the file changed, for example from a file to a link.
  T: 'Modified',
  A: 'Added',
  D: 'Deleted',
  R: 'Renamed',
  C: 'Copied',
  U: 'Updated but unmerged',
}

/** Decodes a name from git's output, whose bytes were read as latin1. Bytes that are not UTF-8 become U+FFFD. */
const nameOf = (latin1: string) => Buffer.from(latin1, 'latin1').toString('utf8')

/** Returns the rest of a record after its first `count` fields. The rest may contain spaces, as file names do. */
const after = (record: string, count: number): string => {
  let at = 0
  for (let field = 0; field < count; field++) at = record.indexOf(' ', at) + 1
  return record.slice(at)
}

const wordAt = (record: string, index: number): StatusWord => words[record[index] ?? '.'] ?? 'Unmodified'

const readHeader = (status: Status, header: string): void => {
  const value = nameOf(after(header, 2))
  if (header.startsWith('# branch.head ')) {
    status.detached = value === '(detached)'
    status.currentBranch = status.detached ? 'HEAD' : value
  } else if (header.startsWith('# branch.upstream ')) status.upstream = value
  else if (header.startsWith('# branch.ab ')) {
    const [ahead, behind] = value.split(' ')
    status.ahead = Math.abs(Number(ahead))
    status.behind = Math.abs(Number(behind))
    // Git prints this line only if the upstream branch exists, so the branch is published.
    status.branchPublished = true
  }
}

export const readStatus = (stdout: Buffer): Status => {
  const status: Status = {
    currentBranch: '',
    fileStatus: [],
    ahead: 0,
    behind: 0,
    branchPublished: false,
    detached: false,
    upstream: '',
  }
  const records = recordsOf(stdout, '\0', 'latin1')
  const put = (name: string, staging: StatusWord, worktree: StatusWord, extra = '') =>
    status.fileStatus.push({ name: nameOf(name), staging, worktree, extra: nameOf(extra) } satisfies FileStatus)
  for (let at = 0; at < records.length; at++) {
    const record = records[at]!
    const kind = record[0]
    if (kind === '#') readHeader(status, record)
    else if (kind === '?') put(after(record, 1), 'Untracked', 'Untracked')
    else if (kind === '1') put(after(record, 8), wordAt(record, 2), wordAt(record, 3))
    else if (kind === 'u') put(after(record, 10), 'Updated but unmerged', 'Updated but unmerged')
    else if (kind === '2') {
      // The next record is the old name of the renamed file.
      at++
      put(after(record, 9), wordAt(record, 2), wordAt(record, 3), records[at] ?? '')
    }
  }
  return status
}

export const getStatus = async (git: Git): Promise<Status> => {
  const args = ['status', '--porcelain=v2', '-z', '--branch', '--ahead-behind', '--untracked-files=all', '--renames']
  // Disables git's optional locks: reading the status must not block a commit.
  return readStatus((await git.run(args, { env: { GIT_OPTIONAL_LOCKS: '0' } })).stdout)
}
