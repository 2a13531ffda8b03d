// The form of a secret: from what was typed to the bodies of `POST /secret` and `PATCH /secret/{secretId}`.
import type { Secret, SecretBody, SecretChange } from './use-secrets.ts'

export type SecretForm = { name: string; value: string; description: string; hosts: string }

/** The form of a secret that exists. Its value is not known here. */
export const formOf = (secret: Secret | undefined): SecretForm => ({
  name: secret?.name ?? '',
  value: '',
  description: secret?.description ?? '',
  hosts: secret?.hosts.join('\n') ?? '',
})

export const hostsOf = (text: string): string[] => text.split(/[\s,]+/).filter((host) => host !== '')

export const bodyOf = ({ name, value, description, hosts }: SecretForm): SecretBody => ({
  name: name.trim(),
  value,
  ...(description.trim() !== '' && { description: description.trim() }),
  hosts: hostsOf(hosts),
})

/** Only what differs from the secret as it is. An empty value means that the old one stays. */
export const changeOf = (secret: Secret, { value, description, hosts }: SecretForm): SecretChange => ({
  ...(value !== '' && { value }),
  ...(description.trim() !== (secret.description ?? '') && { description: description.trim() }),
  ...(hostsOf(hosts).join() !== secret.hosts.join() && { hosts: hostsOf(hosts) }),
})
