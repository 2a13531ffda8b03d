// The form of an identity provider: filled from a template or a stored provider, and turned into request bodies.
import type { AnswerTo } from '../../api/client.ts'

export type Provider = AnswerTo<'/organizations/{organizationId}/identity-providers', 'get'>[number]
export type Template = AnswerTo<'/organizations/{organizationId}/identity-providers/templates', 'get'>[number]

export type ProviderForm = {
  name: string
  issuerUrl: string
  clientId: string
  /** If this is empty, the server keeps the stored secret, which it never sends to the page. */
  clientSecret: string
  scope: string
  /** E-mail domains, separated by spaces, commas or line ends. */
  domains: string
  allowAnyDomain: boolean
  trustEmailVerified: boolean
  defaultAssignedRoleIds: readonly string[]
  enabled: boolean
}

export const emptyForm: ProviderForm = {
  name: '',
  issuerUrl: '',
  clientId: '',
  clientSecret: '',
  scope: 'openid email profile',
  domains: '',
  allowAnyDomain: false,
  trustEmailVerified: false,
  defaultAssignedRoleIds: [],
  enabled: true,
}

export const formOf = (provider: Provider): ProviderForm => ({
  name: provider.name,
  issuerUrl: provider.oidcConfig.issuerUrl,
  clientId: provider.oidcConfig.clientId,
  clientSecret: '',
  scope: provider.oidcConfig.scope,
  domains: provider.emailDomains.join('\n'),
  allowAnyDomain: provider.allowAnyDomain,
  trustEmailVerified: provider.trustEmailVerified,
  defaultAssignedRoleIds: provider.defaultAssignedRoleIds,
  enabled: provider.enabled,
})

/** Puts the typed values into the placeholders of a template's issuer URL. A placeholder without a value stays in braces. */
export const issuerOf = ({ issuerUrl }: Pick<Template, 'issuerUrl'>, typed: Readonly<Record<string, string>>): string =>
  issuerUrl.replace(/\{(\w+)\}/g, (whole, name: string) => typed[name]?.trim() || whole)

/** Whether the issuer URL is empty or still has a placeholder in braces. */
export const isUnfinished = (issuerUrl: string): boolean => issuerUrl.trim() === '' || /\{\w+\}/.test(issuerUrl)

const domainsOf = (text: string): string[] => text.split(/[\s,]+/).filter((domain) => domain !== '')

/** The request body that makes a new provider. */
export const bodyOf = (form: ProviderForm) => ({
  name: form.name,
  oidcConfig: {
    issuerUrl: form.issuerUrl.trim(),
    clientId: form.clientId.trim(),
    scope: form.scope,
    ...(form.clientSecret !== '' && { clientSecret: form.clientSecret }),
  },
  emailDomains: domainsOf(form.domains),
  allowAnyDomain: form.allowAnyDomain,
  trustEmailVerified: form.trustEmailVerified,
  defaultAssignedRoleIds: [...form.defaultAssignedRoleIds],
  enabled: form.enabled,
})

const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)
const changed = <T extends object>(before: T, after: T): Partial<T> =>
  Object.fromEntries(
    Object.entries(after).filter(([name, value]) => !isSame(value, before[name as keyof T])),
  ) as Partial<T>

/** Returns only the changed fields. For some fields, the server demands an additional permission if they are sent. */
export const changeOf = (provider: Provider, form: ProviderForm) => {
  const before = bodyOf(formOf(provider))
  const after = bodyOf(form)
  const { oidcConfig: _, ...rest } = changed(before, after)
  const oidcConfig = changed(before.oidcConfig, after.oidcConfig)
  return { ...rest, ...(Object.keys(oidcConfig).length > 0 && { oidcConfig }) }
}
