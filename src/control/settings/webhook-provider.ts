// The webhook provider that the operator has chosen.
export type ProviderChoice = { kind: 'embedded' } | { kind: 'svix'; url: string; token: string } | { kind: 'none' }

const providerMeaning = 'embedded, svix or none; the default is embedded'

const svixUrl = 'https://api.svix.com'

/** Reads which webhook provider the operator has chosen. Errors are reported through `complain`. */
export const readProviderChoice = (
  {
    provider = 'embedded',
    url,
    token,
  }: { provider?: string | undefined; url?: string | undefined; token?: string | undefined },
  complain: (sentence: string) => void,
): ProviderChoice => {
  switch (provider) {
    case 'embedded':
    case 'none':
      return { kind: provider }
    case 'svix': {
      if (token === undefined) complain('ALCOVE_SVIX_TOKEN is missing: the API token of Svix')
      if (url !== undefined && !/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
        complain('ALCOVE_SVIX_URL is not usable: where the API of Svix is')
      return { kind: 'svix', url: (url ?? svixUrl).replace(/\/+$/, ''), token: token ?? '' }
    }
    default:
      complain(`ALCOVE_WEBHOOK_PROVIDER is not usable: ${providerMeaning}`)
      return { kind: 'none' }
  }
}
