// An organization that uses single sign-on with a real identity provider. People sign in with a simulated browser.
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
  /** URL at which the people of this organization begin to sign in. */
  startUrl: string
  /** Changes the organization's settings for its identity provider, by an API call as the owner. */
  change: (change: object) => Promise<void>
  /** Signs a person in and returns the last page. Without `browser`, a new browser is used. */
  signIn: (login: string, browser?: Browser) => Promise<Page>
  /**
   * Begins to sign a person in, and stops before the last step. Returns the URL to which the identity provider redirects the
   * browser.
   */
  comeBack: (login: string, browser: Browser) => Promise<string>
}

/**
 * Creates an organization whose identity provider is responsible for the domain `example.com`. New users get the role
 * Developer.
 */
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
