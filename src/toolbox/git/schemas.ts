// Requests and answers of the git endpoints. A value that becomes an argument of git must not start with `-`: git could read it as
// an option.
import Type from 'typebox'
import { optional, orNull } from '#src/http/shapes.ts'

/** Returns a value, or `undefined` if it is absent. A client may omit an absent value, or send `null` or an empty text. */
export const given = <T>(value: T | null | undefined): T | undefined =>
  value === null || value === '' ? undefined : value

/** Schema of a text that matches a pattern. `meaning` describes the pattern in a refusal. */
const text = (pattern: RegExp, meaning: string, maxLength = 4096, minLength = 0) =>
  Type.String({ pattern: pattern.source, description: meaning, maxLength, minLength })

/** Path of a repository: absolute, or relative to the user's home. */
const Path = Type.String({ minLength: 1, maxLength: 4096 })
/** Path of a file, relative to the repository. Never a pattern: `*` means a file named `*`. */
const File = Type.String({ minLength: 1, maxLength: 4096 })
const branch = (minLength = 0) =>
  text(/^(?!-)[^\s~^:?*[\\\x00-\x1f\x7f]*$/, 'the name of a branch, such as feature/one', 1024, minLength)
const revision = (minLength = 0) =>
  text(/^(?!-)[^\x00-\x1f\x7f]*$/, 'a branch, tag or commit, which does not begin with -', 1024, minLength)
const CommitId = text(/^(?:[0-9a-fA-F]{4,64})?$/, 'the id of a commit, 4 to 64 hexadecimal digits')
const remoteName = (minLength = 0) =>
  text(/^(?!-)[^\s:\x00-\x1f\x7f]*$/, 'the name of a remote, such as origin', 1024, minLength)
const Url = text(/^(?!-)[^\x00-\x1f\x7f]+$/, 'a URL such as https://example.com/repository.git', 8192)
/**
 * Schema of a credential, which must not have line breaks: in the output of a credential helper, a line break starts another
 * field.
 */
const secret = (minLength = 0) => text(/^[^\x00-\x1f\x7f]*$/, 'one line without control characters', 16_384, minLength)
const ConfigKey = text(
  /^[A-Za-z][A-Za-z0-9-]*\.(?:[^\x00-\x1f\x7f]+\.)?[A-Za-z][A-Za-z0-9-]*$/,
  'a section and a name with a dot between, such as user.name',
)
const Line = text(/^[^\S\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$/, 'one line that is not empty')

const Scope = optional(Type.Enum(['global', 'local', 'system', '']))
const ResetMode = Type.Enum(['soft', 'mixed', 'hard', 'merge', 'keep', ''])

export const InRepository = Type.Object({ path: Path })

const account = { username: optional(secret()), password: optional(secret()) }
export type Account = { username?: string | null; password?: string | null }

export const CloneRequest = Type.Object({
  url: Url,
  path: Path,
  branch: optional(branch()),
  commit_id: optional(CommitId),
  ...account,
  depth: optional(Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 })),
  insecure_skip_tls: optional(Type.Boolean()),
})
export type CloneRequest = Type.Static<typeof CloneRequest>

export const InitRequest = Type.Object({
  path: Path,
  bare: optional(Type.Boolean()),
  initial_branch: optional(branch()),
})
export type InitRequest = Type.Static<typeof InitRequest>

export const AddRequest = Type.Object({ path: Path, files: Type.Array(File, { minItems: 1, maxItems: 4096 }) })
export type AddRequest = Type.Static<typeof AddRequest>

export const CommitRequest = Type.Object({
  path: Path,
  message: Type.String({ pattern: /\S/.source, description: 'a message that is not empty', maxLength: 1024 * 1024 }),
  author: Line,
  email: Line,
  allow_empty: optional(Type.Boolean()),
})
export type CommitRequest = Type.Static<typeof CommitRequest>
export const CommitResponse = Type.Object({ hash: Type.String() })

export const CommitInfo = Type.Object({
  hash: Type.String(),
  author: Type.String(),
  email: Type.String(),
  message: Type.String(),
  timestamp: Type.String(),
})
export type CommitInfo = Type.Static<typeof CommitInfo>

export const ResetRequest = Type.Object({
  path: Path,
  mode: optional(ResetMode),
  target: optional(revision()),
  files: optional(Type.Array(File, { maxItems: 4096 })),
})
export type ResetRequest = Type.Static<typeof ResetRequest>

export const RestoreRequest = Type.Object({
  path: Path,
  files: Type.Array(File, { minItems: 1, maxItems: 4096 }),
  source: optional(revision()),
  staged: optional(Type.Boolean()),
  worktree: optional(Type.Boolean()),
})
export type RestoreRequest = Type.Static<typeof RestoreRequest>

export const BranchRequest = Type.Object({ path: Path, name: branch(1) })
export const CheckoutRequest = Type.Object({
  path: Path,
  branch: revision(1),
})
export const BranchList = Type.Object({ branches: Type.Array(Type.String()), current: Type.String() })
export type BranchList = Type.Static<typeof BranchList>

export const PullRequest = Type.Object({
  path: Path,
  ...account,
  remote: optional(remoteName()),
  branch: optional(branch()),
})
export type PullRequest = Type.Static<typeof PullRequest>
export const PushRequest = Type.Object({
  path: Path,
  ...account,
  remote: optional(remoteName()),
  branch: optional(branch()),
  set_upstream: optional(Type.Boolean()),
})
export type PushRequest = Type.Static<typeof PushRequest>

export const Remote = Type.Object({ name: Type.String(), url: Type.String() })
export const RemoteList = Type.Object({ remotes: Type.Array(Remote) })
export type RemoteList = Type.Static<typeof RemoteList>
export const AddRemoteRequest = Type.Object({
  path: Path,
  name: remoteName(1),
  url: Url,
  fetch: optional(Type.Boolean()),
  overwrite: optional(Type.Boolean()),
})
export type AddRemoteRequest = Type.Static<typeof AddRemoteRequest>

export const ConfigQuestion = Type.Object({ key: ConfigKey, path: optional(Path), scope: Scope })
export type ConfigQuestion = Type.Static<typeof ConfigQuestion>
export const ConfigValue = Type.Object({ value: orNull(Type.String()) })
export const SetConfigRequest = Type.Object({
  key: ConfigKey,
  value: Type.String({ maxLength: 65_536 }),
  path: optional(Path),
  scope: Scope,
})
export type SetConfigRequest = Type.Static<typeof SetConfigRequest>
export const ConfigureUserRequest = Type.Object({ name: Line, email: Line, path: optional(Path), scope: Scope })
export type ConfigureUserRequest = Type.Static<typeof ConfigureUserRequest>

export const StoreCredentialsRequest = Type.Object({
  username: secret(1),
  password: secret(1),
  host: optional(
    text(
      /^(?:[A-Za-z0-9._-]+|\[[0-9a-fA-F:]+\])?(?::\d{1,5})?$/,
      'a host such as example.com or example.com:8443',
      512,
    ),
  ),
  protocol: optional(Type.Enum(['https', 'http', ''])),
})
export type StoreCredentialsRequest = Type.Static<typeof StoreCredentialsRequest>

const words = [
  'Unmodified',
  'Untracked',
  'Modified',
  'Added',
  'Deleted',
  'Renamed',
  'Copied',
  'Updated but unmerged',
] as const
const StatusWord = Type.Union(words.map((word) => Type.Literal(word)))
export type StatusWord = (typeof words)[number]

export const FileStatus = Type.Object({
  name: Type.String(),
  staging: StatusWord,
  worktree: StatusWord,
  /** The old name of a renamed or copied file. */
  extra: Type.String(),
})
export type FileStatus = { name: string; staging: StatusWord; worktree: StatusWord; extra: string }

export const Status = Type.Object({
  currentBranch: Type.String(),
  fileStatus: Type.Array(FileStatus),
  ahead: Type.Integer(),
  behind: Type.Integer(),
  branchPublished: Type.Boolean(),
  detached: Type.Boolean(),
  upstream: Type.String(),
})
export type Status = Omit<Type.Static<typeof Status>, 'fileStatus'> & { fileStatus: FileStatus[] }
