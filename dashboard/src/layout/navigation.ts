// The pages of the dashboard, in groups and in the order of the menu. The command palette offers them too.
type Group = { name: string; items: readonly { to: PageAddress; label: string }[] }
export type PageAddress =
  | '/sandboxes'
  | '/snapshots'
  | '/warm-pools'
  | '/volumes'
  | '/secrets'
  | '/registries'
  | '/keys'
  | '/members'
  | '/usage'
  | '/webhooks'
  | '/audit'
  | '/identity-providers'
  | '/organization'
  | '/regions'
  | '/account'
  | '/api'

export const groups: readonly Group[] = [
  {
    name: '',
    items: [
      { to: '/sandboxes', label: 'Sandboxes' },
      { to: '/snapshots', label: 'Snapshots' },
      { to: '/warm-pools', label: 'Warm pools' },
      { to: '/volumes', label: 'Volumes' },
      { to: '/secrets', label: 'Secrets' },
      { to: '/registries', label: 'Registries' },
    ],
  },
  {
    name: 'Organization',
    items: [
      { to: '/keys', label: 'API keys' },
      { to: '/members', label: 'Members' },
      { to: '/usage', label: 'Usage and quotas' },
      { to: '/webhooks', label: 'Webhooks' },
      { to: '/audit', label: 'Audit log' },
      { to: '/identity-providers', label: 'Single sign-on' },
      { to: '/organization', label: 'Settings' },
    ],
  },
  {
    name: 'Server',
    items: [
      { to: '/regions', label: 'Regions and runners' },
      { to: '/api', label: 'API reference' },
    ],
  },
]
