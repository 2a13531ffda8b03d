// Turns the form of a secret into the request bodies of `POST /secret` and `PATCH /secret/{secretId}`.
import type { Secret, SecretBody, SecretChange } from './use-secrets.ts'

export type SecretForm = { name: string; value: string; description: string; hosts: string }

/** The first content of the form. The value is always empty, because the server never sends the value of a secret. */
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

/** Returns only the fields that were changed. If the field for the value is empty, the secret keeps its value. */
export const changeOf = (secret: Secret, { value, description, hosts }: SecretForm): SecretChange => ({
  ...(value !== '' && { value }),
  ...(description.trim() !== (secret.description ?? '') && { description: description.trim() }),
  ...(hostsOf(hosts).join() !== secret.hosts.join() && { hosts: hostsOf(hosts) }),
})
