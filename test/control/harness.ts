// Starts the real control with a real database for tests. A test calls control as one of several persons.
//   await using app = await startControl()
//   const reply = await app.as('member').get('/sandbox/box')
//   assert.deepEqual([reply.status, reply.body.name], [200, 'box'])
// `as` calls with the API key of a person in people.ts. `asUser` calls as a person of people.ts who has signed in and has a JWT.
// Usually these calls name the person's own organization. With an id they name another one, and with `null` they name none.
// `asNewcomer` calls as a new person, who is created at the first call:
//   await app.asUser('owner').get('/organizations')
//   await app.asUser('owner', null).get('/organizations')
//   await app.asUser('member', organizationId).get('/sandbox')
//   await app.asNewcomer({ sub: 'ada', email: 'ada@example.com', email_verified: true }).get('/users/me')
// Tokens come from a real issuer (issuer.ts). A test can name other issuers in `settings: { identity: { … } }`.
import { type App, createApp } from '#src/control/app.ts'
import type { MailTransport } from '#src/control/mail/transport.ts'
import type { Parts, Settings } from '#src/control/parts.ts'
import type { RunningOptions } from '#src/control/running.ts'
import type { Database } from '#src/control/storage/database.ts'
import { checkAnswer } from '#src/http/testing/checked-answers.ts'
import { type Logger, silentLog } from '#src/kit/log.ts'
import { type Claims, sharedIssuer, type TestIssuer } from './issuer.ts'
import { homeOf, keys, type Person, recogniseAt, type Who } from './people.ts'
import { TestClock, type Time } from './test-clock.ts'
import { openTestDatabase } from './test-database.ts'
import { testEncryption, testSettings } from './test-settings.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test asserts on what it expects to be there
type Body = any

export type Reply = { status: number; body: Body; headers: Record<string, string | string[] | undefined>; text: string }

type Extra = { headers?: Record<string, string> }

export type Client = {
  get: (path: string, extra?: Extra) => Promise<Reply>
  post: (path: string, body?: unknown, extra?: Extra) => Promise<Reply>
  put: (path: string, body?: unknown, extra?: Extra) => Promise<Reply>
  patch: (path: string, body?: unknown, extra?: Extra) => Promise<Reply>
  delete: (path: string, extra?: Extra) => Promise<Reply>
  /** Sends a request with any method. `payload` is sent as it is, without JSON encoding. */
  send: (method: string, path: string, payload?: string, extra?: Extra) => Promise<Reply>
}

export type TestControl = AsyncDisposable & {
  app: App
  parts: Parts
  database: Database
  /** URL of the database, for tests that need their own connection. */
  url: string
  clock: TestClock
  /** Makes calls with the API key of a person in people.ts. The paths of the calls begin after `/api`. */
  as: (who: Who) => Client
  /**
   * Makes calls as a person of people.ts who is signed in with a token. If `organizationId` is `null`, the calls name no
   * organization.
   */
  asUser: (who: Person, organizationId?: string | null) => Client
  /** Makes calls as a new person who is signed in with a token that has these claims. */
  asNewcomer: (claims: Claims, organizationId?: string) => Client
  /** The issuer that signs the tokens with which `asUser` and `asNewcomer` sign in. */
  issuer: TestIssuer
  /** Returns a client that sends `token` as the bearer token of its calls. */
  with: (token: string) => Client
  /**
   * Advances the clock, and the last heartbeats of runners with open links, so that control does not consider these runners silent.
   */
  pass: (time: Time) => Promise<void>
  /** Runs the periodic sweeps once. In tests, sweeps run only when this function is called. */
  sweep: () => Promise<void>
  /**
   * Makes control listen on a loopback port too, for WebSockets and for clients that need a URL. Returns
   * `http://127.0.0.1:port`.
   */
  listen: () => Promise<string>
}

export type ControlOptions = {
  clock?: TestClock
  settings?: Partial<Settings>
  sandboxes?: Partial<RunningOptions>
  log?: Logger
  transport?: MailTransport
}

const readBody = (text: string): Body => {
  try {
    return JSON.parse(text)
  } catch {
    return text === '' ? undefined : text
  }
}

type Credential = { token: string | undefined; headers?: Record<string, string> }

const clientOf = ({ server, routes }: App, credential: Credential | (() => Promise<Credential>)): Client => {
  const send: Client['send'] = async (method, path, payload, { headers = {} } = {}) => {
    const { token, headers: own } = typeof credential === 'function' ? await credential() : credential
    const reply = await server.inject({
      method: method as 'GET',
      url: `/api${path}`,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(payload === undefined ? {} : { 'content-type': 'application/json' }),
        ...own,
        ...headers,
      },
      ...(payload === undefined ? {} : { payload }),
    })
    const answer = {
      status: reply.statusCode,
      body: readBody(reply.body),
      headers: reply.headers as Reply['headers'],
      text: reply.body,
    }
    checkAnswer(routes, { method, path }, answer)
    return answer
  }
  const withBody = (method: string) => (path: string, body?: unknown, extra?: Extra) =>
    send(method, path, body === undefined ? undefined : JSON.stringify(body), extra)
  return {
    send,
    get: (path, extra) => send('GET', path, undefined, extra),
    delete: (path, extra) => send('DELETE', path, undefined, extra),
    post: withBody('POST'),
    put: withBody('PUT'),
    patch: withBody('PATCH'),
  }
}

const naming = (organizationId: string | null | undefined): Record<string, string> =>
  organizationId ? { 'X-Daytona-Organization-ID': organizationId } : {}

const clientsWith = (app: App, issuer: TestIssuer, { database, clock }: Parts) => ({
  asUser: (who: Person, organizationId: string | null | undefined = homeOf(who)): Client =>
    clientOf(app, async () => {
      await recogniseAt(database.sql, issuer.url, who)
      return { token: await issuer.token({ sub: who }, { now: clock.now() }), headers: naming(organizationId) }
    }),
  asNewcomer: (claims: Claims, organizationId?: string): Client =>
    clientOf(app, async () => ({
      token: await issuer.token(claims, { now: clock.now() }),
      headers: naming(organizationId),
    })),
})

/** Starts control on a new database. Disposing of the result stops control and drops the database. */
export const startControl = async (options: ControlOptions = {}): Promise<TestControl> => {
  const clock = options.clock ?? new TestClock()
  const opened = await openTestDatabase()
  const { database } = opened
  const issuer = await sharedIssuer()
  const identity = { ...testSettings.identity, issuers: [issuer.url] }
  const settings = { ...testSettings, identity, ...options.settings }
  const parts: Parts = { database, clock, log: options.log ?? silentLog(), settings, encryption: testEncryption }
  const sandboxOptions = { sweepSeconds: 0, mostWarm: 0, createWaitSeconds: 0, momentMilliseconds: 0 }
  const app = await createApp(parts, { ...sandboxOptions, ...options.sandboxes }, options).catch(async (error) => {
    await opened[Symbol.asyncDispose]()
    throw error
  })
  let listening: Promise<string> | undefined
  return {
    app,
    parts,
    database,
    url: opened.url,
    clock,
    as: (who) => clientOf(app, { token: who === 'nobody' ? undefined : keys[who] }),
    ...clientsWith(app, issuer, parts),
    issuer,
    with: (token) => clientOf(app, { token }),
    pass: async (time) => {
      clock.advance(time)
      await database.sql`update runners set last_heartbeat_at = ${clock.now()} where id = any(${app.sandboxes.links.ids()})`
    },
    sweep: async () => {
      await app.sandboxes.sweep()
      await app.webhooks.sweep()
    },
    listen: () => {
      listening ??= app.server.listen({ host: '127.0.0.1', port: 0 })
      return listening
    },
    [Symbol.asyncDispose]: async () => {
      await app.close()
      await opened[Symbol.asyncDispose]()
    },
  }
}
