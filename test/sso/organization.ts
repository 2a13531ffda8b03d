// An organization with single sign-on by a real provider, and people who sign in to it with a browser.
import assert from 'node:assert/strict'
import { readNetworks } from '#src/kit/networks.ts'
import { type ControlOptions, startControl, type TestControl } from '../control/harness.ts'
import { organizations } from '../control/people.ts'
import { Browser, type Page } from './browser.ts'
import type { TestProvider } from './provider.ts'

export const developer = '00000000-0000-0000-0000-000000000001'

export type SsoControl = AsyncDisposable & {
  app: TestControl
  providerId: string
  /** Where somebody begins to sign in. */
  startUrl: string
  /** Changes the provider by the API, as the owner. */
  change: (change: object) => Promise<void>
  /** All of a sign-in in a browser of its own, unless told; answers the page where it ends. */
  signIn: (login: string, browser?: Browser) => Promise<Page>
  /** All of it but the last step: the address that the provider sends the browser back to. */
  comeBack: (login: string, browser: Browser) => Promise<string>
}

/** `example.com` is the organization's domain, and Developer what newcomers are given. */
export const startSso = async (
  provider: TestProvider,
  more: object = {},
  options: ControlOptions = {},
): Promise<SsoControl> => {
  const settings = { privateTargets: readNetworks('127.0.0.0/8')!, ssoForAll: true, ...options.settings }
  const app = await startControl({ ...options, settings })
  const path = `/organizations/${organizations.ours}/identity-providers`
  const { clientId, clientSecret } = provider.setup
  const reply = await app.as('owner').post(path, {
    name: 'Example',
    oidcConfig: { issuerUrl: provider.issuer, clientId, clientSecret },
    emailDomains: ['example.com'],
    defaultAssignedRoleIds: [developer],
    ...more,
  })
  assert.equal(reply.status, 201, reply.text)
  const startUrl = `${app.parts.settings.publicUrl}/api/auth/sso/org/${organizations.ours}`
  const comeBack: SsoControl['comeBack'] = async (login, browser) => {
    const begun = await browser.go(startUrl)
    assert.equal(begun.status, 302, begun.text)
    return await browser.signInAt(begun.location!, login)
  }
  return {
    app,
    providerId: reply.body.id,
    startUrl,
    comeBack,
    change: async (change) => {
      const changed = await app.as('owner').patch(`${path}/${reply.body.id}`, change)
      assert.equal(changed.status, 200, changed.text)
    },
    signIn: async (login, browser = new Browser(app)) => await browser.go(await comeBack(login, browser)),
    [Symbol.asyncDispose]: () => app[Symbol.asyncDispose](),
  }
}
