// Replaces the placeholders of secrets in a request: in header values, in Basic credentials, and in path and query. Bodies
// stay unchanged, because their length and signature would become wrong.
import type { KnownSecret } from '#src/wire/secrets.ts'

/** Maximum number of bytes of a request's path and headers, before and after secrets replace placeholders. */
export const mostHeadBytes = 64 * 1024

/** Thrown if a request with its secrets filled in would be longer than `mostHeadBytes`. */
export class HeadTooLarge extends Error {}

type Put = Pick<KnownSecret, 'placeholder' | 'value'>

const put = (secrets: readonly Put[], text: string, written: (value: string) => string = (value) => value): string => {
  let found = text
  for (const { placeholder, value } of secrets) {
    if (!found.includes(placeholder)) continue
    const count = found.split(placeholder).length - 1
    if (found.length + count * written(value).length > mostHeadBytes) throw new HeadTooLarge()
    found = found.replaceAll(placeholder, () => written(value))
  }
  return found
}

const basic = /^(\s*basic\s+)([A-Za-z0-9+/_-]+={0,2})\s*$/i

export const inHeader = (secrets: readonly Put[], name: string, value: string): string => {
  const whole = put(secrets, value)
  const [, scheme = '', credentials] = (name.toLowerCase() === 'authorization' && basic.exec(whole)) || []
  if (credentials === undefined) return whole
  const plain = Buffer.from(credentials, 'base64').toString('latin1')
  const filled = put(secrets, plain)
  return filled === plain ? whole : `${scheme}${Buffer.from(filled, 'latin1').toString('base64')}`
}

export const inTarget = (secrets: readonly Put[], target: string): string => put(secrets, target, encodeURIComponent)

/** Throws if path and headers together are too long. */
export const checkHead = (target: string, headers: readonly (string | readonly string[] | undefined)[]): void => {
  const length = headers.flat().reduce((sum, text) => sum + (text?.length ?? 0), target.length)
  if (length > mostHeadBytes) throw new HeadTooLarge()
}
