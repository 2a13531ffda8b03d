// Every error that callers can get. A code never gets another meaning, because clients depend on it.

export const problems = {
  bad_request: [400, 'BAD_REQUEST', 'The request is not valid.'],
  invalid_body: [400, 'INVALID_REQUEST_BODY', 'The body is not valid JSON.'],
  unauthorized: [401, 'UNAUTHORIZED', 'This call needs a valid credential, such as an API key.'],
  forbidden: [403, 'FORBIDDEN', 'This credential has no permission for this call.'],
  not_found: [404, 'NOT_FOUND', 'What you asked for does not exist, or you have no access to it.'],
  timeout: [408, 'REQUEST_TIMEOUT', 'The call took longer than its timeout.'],
  conflict: [409, 'CONFLICT', 'The call conflicts with the current state.'],
  already_exists: [409, 'CONFLICT', 'This name already exists.'],
  changing: [
    409,
    'CONFLICT',
    'State change in progress: another operation on this sandbox has not ended yet. Try again later.',
  ],
  not_started: [409, 'CONFLICT', 'The sandbox is not running.'],
  quota_exceeded: [403, 'FORBIDDEN', 'This is more than a quota of the organization allows.'],
  snapshot_in_making: [503, 'SERVICE_UNAVAILABLE', 'The snapshot is still being made. Try again.'],
  snapshot_inactive: [400, 'BAD_REQUEST', 'The snapshot is not active.'],
  no_room: [503, 'SERVICE_UNAVAILABLE', 'No runner has capacity for this now. Try again later.'],
  gone: [410, 'GONE', 'This no longer exists.'],
  domain_taken: [409, 'IDENTITY_PROVIDER_DOMAIN_TAKEN', 'Another identity provider has claimed one of these domains.'],
  domain_unverified: [400, 'IDENTITY_PROVIDER_DOMAIN_UNVERIFIED', 'No member has a verified address at this domain.'],
  sso_missing_email: [403, 'missing_email', 'The identity provider sent no e-mail address.'],
  sso_email_not_verified: [403, 'email_not_verified', 'The identity provider has not verified the e-mail address.'],
  sso_domain_not_allowed: [
    403,
    'domain_not_allowed',
    'This identity provider may not sign in users with an e-mail address of this domain.',
  ],
  sso_provider_disabled: [403, 'provider_disabled', 'Sign-in with this identity provider is disabled.'],
  sso_link_pending: [
    403,
    'link_pending',
    'This e-mail address already has an account. Sign in to that account and confirm the link first.',
  ],
  sso_link_refused: [
    403,
    'link_refused',
    'This e-mail address has an account that cannot be linked to single sign-on. Ask the operator of this server.',
  ],
  sso_access_denied: [403, 'access_denied', 'The identity provider refused the sign-in.'],
  sso_invalid_state: [
    400,
    'invalid_state',
    'This sign-in has expired, or was started in another browser. Start again.',
  ],
  sso_invalid_response: [400, 'invalid_response', 'The identity provider sent an answer that is not valid.'],
  sso_provider_unavailable: [502, 'provider_unavailable', 'The identity provider cannot be reached.'],
  too_large: [413, 'PAYLOAD_TOO_LARGE', 'The body of the request is too large.'],
  range: [416, 'RANGE_NOT_SATISFIABLE', 'The requested range is outside the file.'],
  media_type: [415, 'UNSUPPORTED_MEDIA_TYPE', 'This call does not accept this content type.'],
  unprocessable: [422, 'UNPROCESSABLE_ENTITY', 'This sandbox does not support this operation.'],
  rate_limited: [429, 'TOO_MANY_REQUESTS', 'This client sent too many requests, more than a rate limit allows.'],
  internal: [500, 'INTERNAL_SERVER_ERROR', 'The server had an internal error. Its log says what happened.'],
  sandbox_silent: [502, 'BAD_GATEWAY', 'The sandbox does not answer. Is the Sandbox started?'],
  bad_gateway: [502, 'BAD_GATEWAY', 'The runner of this sandbox cannot be reached.'],
  unavailable: [503, 'SERVICE_UNAVAILABLE', 'The server cannot answer this call now. Try again later.'],
  execution_timeout: [408, 'PROCESS_EXECUTION_TIMEOUT', 'The command did not end before its execution timeout.'],
  process_not_found: [404, 'PROCESS_NOT_FOUND', 'There is no such command.'],
  session_ended: [410, 'SESSION_ENDED', 'The shell of this session has ended.'],
  command_completed: [410, 'COMMAND_ALREADY_COMPLETED', 'This command has already finished.'],
  lsp_not_started: [400, 'LSP_SERVER_NOT_INITIALIZED', 'The language server is not started: call start first.'],
  file_not_found: [404, 'FILE_NOT_FOUND', 'There is no such file.'],
  file_access_denied: [403, 'FILE_ACCESS_DENIED', 'The sandbox user may not do that with this file.'],
  invalid_file_path: [400, 'INVALID_FILE_PATH', 'This path cannot be used.'],
  file_read_failed: [400, 'FILE_READ_FAILED', 'The file could not be read.'],
  git_auth_failed: [401, 'GIT_AUTH_FAILED', 'The remote refused the credentials.'],
  git_repo_not_found: [404, 'GIT_REPO_NOT_FOUND', 'There is no Git repository at this path.'],
  git_branch_not_found: [404, 'GIT_BRANCH_NOT_FOUND', 'There is no such branch.'],
  git_branch_exists: [409, 'GIT_BRANCH_EXISTS', 'This branch already exists.'],
  git_push_rejected: [409, 'GIT_PUSH_REJECTED', 'The remote rejected the push.'],
  git_dirty_worktree: [
    409,
    'GIT_DIRTY_WORKTREE',
    'Local changes prevent this operation. Commit or discard the changes first.',
  ],
  git_merge_conflict: [409, 'GIT_MERGE_CONFLICT', 'The merge has conflicts.'],
  git_transport_failed: [502, 'GIT_TRANSPORT_FAILED', 'The remote could not be reached.'],
  git_remote_rejected: [409, 'GIT_REMOTE_REJECTED', 'The remote rejected the request.'],
} as const satisfies Record<string, readonly [status: number, code: string, sentence: string]>

export type ProblemCode = keyof typeof problems

export const isProblemCode = (word: unknown): word is ProblemCode =>
  typeof word === 'string' && Object.hasOwn(problems, word)

/**
 * Codes of status 500 and above that are no failure of Alcove. A caller, a sandbox, or a server chosen by a caller is the cause.
 */
const notOurs: ReadonlySet<ProblemCode> = new Set([
  'sandbox_silent',
  'sso_provider_unavailable',
  'git_transport_failed',
])

/**
 * Returns the log level for a refused call: above `debug` only if Alcove has failed. `cause`: the error that led to the refusal.
 * Without an error, only the code `internal` is a failure of Alcove. A lack of free capacity is no failure.
 */
export const logLevelOf = ({
  code,
  status,
  cause,
}: Pick<Problem, 'code' | 'status' | 'cause'>): 'debug' | 'warn' | 'error' => {
  if (code === 'internal') return 'error'
  return status < 500 || notOurs.has(code) || cause === undefined ? 'debug' : 'warn'
}

/** Value of the header `Retry-After`, in seconds, for errors whose reason ends soon without any action of the caller. */
export const retryAfterSeconds: Partial<Record<ProblemCode, number>> = { snapshot_in_making: 5 }

/**
 * Words that client programs search for in an error's message, because old SDKs gave programs nothing else. Some programs
 * distinguish upper and lower case. `Problem` adds the words of its status and code to each message that lacks them.
 */
const clientWords: {
  byStatus: Record<number, readonly string[]>
  byCode: Partial<Record<ProblemCode, readonly string[]>>
} = {
  byStatus: { 404: ['not found'], 408: ['timeout'], 429: ['rate limit', 'too many requests'] },
  byCode: {
    unauthorized: ['Invalid credentials', 'unauthorized'],
    already_exists: ['already exists'],
    git_branch_exists: ['already exists'],
    changing: ['State change in progress'],
    not_started: ['Is the Sandbox started?'],
    quota_exceeded: ['quota exceeded', 'limit exceeded'],
    snapshot_inactive: ['inactive'],
    no_room: ['capacity'],
    file_access_denied: ['permission denied'],
    execution_timeout: ['execution timeout'],
  },
}

export const wordsOf = (code: ProblemCode): readonly string[] => [
  ...(clientWords.byCode[code] ?? []),
  ...(clientWords.byStatus[problems[code][0]] ?? []),
]

const withWords = (code: ProblemCode, sentence: string): string => {
  const missing = wordsOf(code).filter((words) => !sentence.includes(words))
  if (missing.length === 0) return sentence
  const [bare, end] = sentence.endsWith('.') ? [sentence.slice(0, -1), '.'] : [sentence, '']
  const questions = missing.filter((words) => words.endsWith('?'))
  if (questions.length > 0) return [`${bare}.`, ...questions].join(' ')
  // After several sentences, the words would look like a part of the last sentence, which often says what to do.
  if (/[.?] \p{Lu}/u.test(bare)) return `${sentence} (${missing.join(', ')})`
  return `${bare} (${missing.join(', ')})${end}`
}

type Options = {
  /** The error that led to this problem. It is logged, and callers never see it. */
  cause?: unknown
  /** More fields for the body of the answer. */
  fields?: Readonly<Record<string, string>>
}

/** An error that a caller gets as an answer. `sentence` is shown in place of the sentence in the table `problems`. */
export class Problem extends Error {
  readonly fields: Readonly<Record<string, string>>
  readonly code: ProblemCode
  readonly status: number
  /** The code in the form that clients see, such as `NOT_FOUND`. */
  readonly wireCode: string

  constructor(code: ProblemCode, sentence?: string, { fields = {}, ...options }: Options = {}) {
    const [status, wireCode, standard] = problems[code]
    super(withWords(code, sentence ?? standard), options)
    this.fields = fields
    this.name = 'Problem'
    this.code = code
    this.status = status
    this.wireCode = wireCode
  }
}

/**
 * Returns the error for a sandbox that the caller cannot find. The error must not show whether another organization has the
 * sandbox.
 */
export const noSandbox = (idOrName: string, options: { cause?: unknown } = {}): Problem =>
  new Problem(
    'not_found',
    `Sandbox with ID or name ${idOrName.slice(0, 255)} not found. Sandbox not found in this organization.`,
    options,
  )

export const noSnapshot = (idOrName: string, code: 'not_found' | 'bad_request' = 'not_found'): Problem =>
  new Problem(code, `Snapshot ${idOrName.slice(0, 255)} not found. There is no such snapshot.`)

/** Returns the error for a call that needs a running sandbox. `why`: a sentence for the caller. */
export const notStarted = (why?: string, options: { cause?: unknown } = {}): Problem =>
  new Problem('not_started', why, options)
