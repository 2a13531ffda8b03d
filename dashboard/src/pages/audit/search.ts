// Reads the filters of the audit log from the page's address, and turns them into a query for the API.
export const outcomes = {
  done: 'Succeeded',
  refused: 'Refused',
  failed: 'Failed in the server',
  unfinished: 'Without an end',
} as const
export type Outcome = keyof typeof outcomes

export type AuditSearch = {
  targetType?: string
  action?: string
  actor?: string
  targetId?: string
  outcome?: Outcome
  /** Times as `YYYY-MM-DDTHH:MM`, in the reader's time zone. */
  after?: string
  before?: string
  /** True: the page shows the audit log of the whole server, which only operators may read. */
  server?: true
}

const texts = ['targetType', 'action', 'actor', 'targetId', 'after', 'before'] as const

/** Reads the filters from the query parameters of the address. Ignores unknown parameters. */
export const readAuditSearch = (search: Record<string, unknown>): AuditSearch => {
  const read: AuditSearch = {}
  for (const name of texts) {
    const value = search[name]
    if ((typeof value === 'string' || typeof value === 'number') && String(value) !== '')
      read[name] = String(value).slice(0, 255)
  }
  const { outcome, server } = search
  if (typeof outcome === 'string' && Object.hasOwn(outcomes, outcome)) read.outcome = outcome as Outcome
  if (server === true) read.server = true
  return read
}

const statusOf: Record<Outcome, Record<string, number>> = {
  done: { 'statusCode[gte]': 100, 'statusCode[lt]': 400 },
  refused: { 'statusCode[gte]': 400, 'statusCode[lt]': 500 },
  failed: { 'statusCode[gte]': 500 },
  // A call has status 0 while it runs. The status stays 0 if the server was killed meanwhile.
  unfinished: { 'statusCode[eq]': 0 },
}

const isId = (text: string) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)

const timeOf = (text: string | undefined): string | undefined => {
  const time = new Date(text ?? '')
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString()
}

/** Returns the query parameters for the API. An actor is an e-mail address or a user id. */
export const auditQuery = (search: AuditSearch): Record<string, string | number> => {
  const { targetType, action, actor, targetId, outcome } = search
  const after = timeOf(search.after)
  const before = timeOf(search.before)
  return {
    ...(targetType !== undefined && { 'targetType[eq]': targetType }),
    ...(action !== undefined && { 'action[eq]': action }),
    ...(actor !== undefined && { [isId(actor) ? 'actorId[eq]' : 'actorEmail[eq]']: actor }),
    ...(targetId !== undefined && { 'targetId[eq]': targetId }),
    ...(outcome !== undefined && statusOf[outcome]),
    ...(after !== undefined && { from: after }),
    ...(before !== undefined && { to: before }),
  }
}

/** Turns a name of the API into words for readers: `update_public_status` becomes `update public status`. */
export const wordsOf = (word: string): string =>
  word
    .replaceAll('_', ' ')
    .replace(/\bsso\b/, 'SSO')
    .replace(/^api\b/, 'API')
