// Translates failures of git into Problems. Git reports most failures only as text, and only this module parses that text. All
// calls run under LC_ALL=C, and tests cause the messages with a real git.
import { Problem, type ProblemCode } from '#src/problems.ts'

/** Patterns of git's messages, and their meaning. The first pattern that matches decides. */
const meanings = [
  [
    'git_repo_not_found',
    /^fatal: (?:not a git repository|invalid gitfile format|--local can only be used inside a git repository)/m,
  ],
  [
    'git_auth_failed',
    /Authentication failed for|could not read (?:Username|Password)|requested URL returned error: 40[13]|Permission denied \(/,
  ],
  [
    'git_repo_not_found',
    /^fatal: repository '.*' (?:not found|does not exist)|does not appear to be a git repository/m,
  ],
  [
    'git_branch_not_found',
    /Remote branch .* not found|couldn't find remote ref|src refspec .* does not match any|^error: branch '.*' not found/m,
  ],
  [
    'git_branch_not_found',
    /^fatal: (?:invalid reference|ambiguous argument|Failed to resolve|Could not parse object|could not resolve|reference is not a tree|bad revision)/m,
  ],
  ['git_branch_exists', /^fatal: a branch named '.*' already exists/m],
  [
    'git_merge_conflict',
    /you have unmerged (?:files|paths)|resolve your current index first|^CONFLICT \(|not concluded your merge|: needs merge$/m,
  ],
  ['git_dirty_worktree', /would be overwritten by|Entry '.*' not uptodate|cannot pull with rebase: You have unstaged/],
  ['git_push_rejected', /^!.*\[rejected\]/m],
  ['git_remote_rejected', /^!.*\[remote rejected\]|^fatal: remote error:/m],
  [
    'git_transport_failed',
    /^fatal: unable to access '[a-z][a-z0-9+.-]*:\/\/|Could not read from remote repository|unable to connect to|Host key verification failed|hung up unexpectedly|early EOF/m,
  ],
  ['file_not_found', /pathspec '.*' did not match any file/],
  ['file_access_denied', /dubious ownership|Permission denied|Read-only file system/],
  [
    'conflict',
    /already exists|nothing to commit|nothing added to commit|no changes added to commit|File exists|unrelated histories|Cannot delete branch/,
  ],
  ['unprocessable', /No space left on device|Disk quota exceeded/],
  ['not_found', /^error: No such remote/m],
] as const satisfies readonly (readonly [ProblemCode, RegExp])[]

const sentenceLength = 1000
/** Maximum length of a matched line in characters. A pattern may take quadratic time, and a hook can print lines of any length. */
const lineLength = 1024

/** Returns git's message without hints, progress, and the control characters that a remote may have sent. */
const sentenceOf = (stderr: string): string | undefined => {
  const lines = stderr
    .split(/[\r\n]+/)
    .map((line) => line.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, '').replace(/[\x00-\x08\x0b-\x1f\x7f]/g, ''))
    .filter((line) => line.trim() !== '' && !line.startsWith('hint:'))
  const text = lines.join('\n').replace(/^(?:fatal|error): /gm, '')
  // Shorten from the start: the end of the text states the error.
  return text === '' ? undefined : text.slice(-sentenceLength).toWellFormed()
}

export const problemOf = ({ exitCode, stdout, stderr }: { exitCode: number; stdout: Buffer; stderr: string }) => {
  const said = `${stderr}\n${stdout.subarray(0, 64 * 1024).toString('utf8')}`
  const text = said
    .split('\n')
    .map((line) => line.slice(0, lineLength))
    .join('\n')
  const meaning = meanings.find(([, pattern]) => pattern.test(text))
  const cause = new Error(`git ended with ${exitCode}`)
  const sentence = sentenceOf(stderr) ?? sentenceOf(stdout.subarray(0, 64 * 1024).toString('utf8'))
  return new Problem(meaning?.[0] ?? 'bad_request', sentence ?? `Git ended with exit code ${exitCode}.`, { cause })
}
