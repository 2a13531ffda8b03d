// Starts and controls the OpenID provider of provider-process.ts.
//
//   await using provider = await startProvider()
//   await provider.setAccounts({ ada: { email: 'ada@example.com', email_verified: true } })
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

export type ProviderSetup = {
  clientId: string
  clientSecret: string
  redirectUri: string
  authMethod: 'client_secret_basic' | 'client_secret_post'
}

export type ProviderOrder =
  | { type: 'accounts'; accounts: Record<string, Record<string, unknown>> }
  | { type: 'rotate' }
  | { type: 'claims'; inToken: boolean }
  | { type: 'asked' }

export type TestProvider = AsyncDisposable & {
  issuer: string
  setup: ProviderSetup
  /** Sets all accounts of the provider. `accounts`: the claims for each login name. */
  setAccounts: (accounts: Record<string, Record<string, unknown>>) => Promise<void>
  /** Makes the provider sign with a new key, and publish only the new key. */
  rotate: () => Promise<void>
  /** Sets where the provider returns the email address of a user. True: in the ID token. False: only at the userinfo endpoint. */
  setClaimsInToken: (inToken: boolean) => Promise<void>
  /** Returns the paths of the requests that the provider has received since the last call of this function. */
  takeAsked: () => Promise<string[]>
  stop: () => Promise<void>
}

const standardSetup: ProviderSetup = {
  clientId: 'alcove-client',
  // The client secret has characters that a client must encode for HTTP Basic authentication.
  clientSecret: 'secret:of/the+client%',
  redirectUri: 'http://control.test:3000/api/auth/sso/callback',
  authMethod: 'client_secret_basic',
}

export const startProvider = async (more: Partial<ProviderSetup> = {}): Promise<TestProvider> => {
  const setup = { ...standardSetup, ...more }
  const child = fork(join(import.meta.dirname, 'provider-process.ts'), [JSON.stringify(setup)], { silent: true })
  const exited = once(child, 'exit')
  let stderr = ''
  child.stderr?.on('data', (piece) => {
    stderr += piece
  })
  child.stdout?.resume()
  const first = await Promise.race([once(child, 'message'), exited.then(() => undefined)])
  if (first === undefined) throw new Error(`the provider did not start: ${stderr}`)
  const [{ issuer }] = first as [{ issuer: string }]
  const waiting = new Map<number, (answer: unknown) => void>()
  child.on('message', ({ id, answer }: { id: number; answer: unknown }) => waiting.get(id)?.(answer))
  let last = 0
  const tell = async (order: ProviderOrder): Promise<unknown> => {
    last += 1
    const id = last
    const { promise, resolve } = Promise.withResolvers<unknown>()
    waiting.set(id, resolve)
    child.send({ id, order })
    return await promise.finally(() => waiting.delete(id))
  }
  const stop = async () => {
    child.kill('SIGKILL')
    await exited
  }
  return {
    issuer,
    setup,
    setAccounts: async (accounts) => void (await tell({ type: 'accounts', accounts })),
    rotate: async () => void (await tell({ type: 'rotate' })),
    setClaimsInToken: async (inToken) => void (await tell({ type: 'claims', inToken })),
    takeAsked: async () => (await tell({ type: 'asked' })) as string[],
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
