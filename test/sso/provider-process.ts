// A real OpenID provider (oidc-provider) in a process of its own. Over the IPC channel, it sends its address to the test, and gets
// accounts and keys from the test. People sign in with a form and cookies.

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { flushCompileCache } from 'node:module'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import Provider, { type Adapter, type AdapterPayload, type Configuration } from 'oidc-provider'
import type { ProviderOrder, ProviderSetup } from './provider.ts'

type Accounts = Record<string, Record<string, unknown>>

const stored = new Map<string, AdapterPayload>()

/** The OpenID provider's storage. A change of signing keys makes a new object `Provider`, which goes on with this storage. */
const adapter = (model: string): Adapter => {
  const keyOf = (id: string) => `${model} ${id}`
  const find = (is: (payload: AdapterPayload) => boolean) => [...stored.values()].find(is)
  return {
    upsert: async (id, payload) => void stored.set(keyOf(id), payload),
    find: async (id) => stored.get(keyOf(id)),
    findByUid: async (uid) => find((payload) => payload.uid === uid && payload.kind === model),
    findByUserCode: async (code) => find((payload) => payload.userCode === code),
    destroy: async (id) => void stored.delete(keyOf(id)),
    consume: async (id) => {
      const payload = stored.get(keyOf(id))
      if (payload !== undefined) payload.consumed = Math.floor(Date.now() / 1000)
    },
    revokeByGrantId: async (grantId) => {
      for (const [key, payload] of stored) if (payload.grantId === grantId) stored.delete(key)
    },
  }
}

const readSetup = (): ProviderSetup => JSON.parse(process.argv[2] ?? '{}')

const { clientId, clientSecret, redirectUri, authMethod } = readSetup()

let accounts: Accounts = {}
let claimsInToken = true
let provider: Provider
const asked: string[] = []

const makeKey = async (): Promise<JWK> => {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  return { ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: crypto.randomUUID() }
}

const configurationWith = (key: JWK): Configuration => ({
  adapter,
  clients: [
    {
      client_id: clientId,
      client_secret: clientSecret,
      redirect_uris: [redirectUri],
      grant_types: ['authorization_code'],
      response_types: ['code'],
      token_endpoint_auth_method: authMethod,
    },
  ],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
  clientAuthMethods: [authMethod],
  conformIdTokenClaims: !claimsInToken,
  cookies: { keys: ['of a test'] },
  features: { devInteractions: { enabled: false } },
  findAccount: (_context, accountId) =>
    accounts[accountId] === undefined
      ? undefined
      : { accountId, claims: async () => ({ sub: accountId, ...accounts[accountId] }) },
  interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
  jwks: { keys: [key as never] },
  // Grants each client the scopes `openid email profile`, without asking the user.
  loadExistingGrant: async (context) => {
    const { session, client, provider: current } = context.oidc
    const known = session!.grantIdFor(client!.clientId)
    if (known !== undefined) return await current.Grant.find(known)
    const grant = new current.Grant({ accountId: session!.accountId!, clientId: client!.clientId })
    grant.addOIDCScope('openid email profile')
    await grant.save()
    return grant
  },
  pkce: { required: () => true },
  ttl: { AccessToken: 60, AuthorizationCode: 60, Grant: 60, IdToken: 60, Interaction: 60, Session: 60 },
})

const readBody = async (request: IncomingMessage): Promise<URLSearchParams> => {
  let text = ''
  for await (const piece of request) text += piece
  return new URLSearchParams(text)
}

const interact = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  if (request.method === 'GET') {
    response.setHeader('content-type', 'text/html')
    response.end(`<form method="post" action="${request.url}"><input name="login"></form>`)
    return
  }
  const login = (await readBody(request)).get('login') ?? ''
  const result = accounts[login] === undefined ? { error: 'access_denied' } : { login: { accountId: login } }
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false })
}

const server = createServer((request, response) => {
  asked.push(new URL(request.url ?? '/', 'http://provider').pathname)
  if (request.url?.startsWith('/interaction/') === true) {
    interact(request, response).catch((error: Error) => response.writeHead(500).end(error.message))
    return
  }
  provider.callback()(request, response)
})

await once(server.listen(0, '127.0.0.1'), 'listening')
const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

const renew = async () => {
  provider = new Provider(issuer, configurationWith(key))
}

let key = await makeKey()
await renew()

const obey = async (order: ProviderOrder): Promise<unknown> => {
  if (order.type === 'accounts') accounts = order.accounts
  if (order.type === 'rotate') key = await makeKey()
  if (order.type === 'claims') claimsInToken = order.inToken
  if (order.type === 'rotate' || order.type === 'claims') await renew()
  return order.type === 'asked' ? asked.splice(0) : undefined
}

process.on('message', ({ id, order }: { id: number; order: ProviderOrder }) => {
  obey(order).then((answer) => process.send?.({ id, answer }))
})
process.on('disconnect', () => process.exit(0))
// Write Node's compile cache now. Node would write it only at a normal end of the process, but this process is always killed.
flushCompileCache()
process.send?.({ issuer })
