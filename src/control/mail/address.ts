// Reads e-mail addresses as people type them. Changes A to Z to lower case, so that two spellings of an address become
// equal.
import { Problem } from '#src/problems.ts'

const longest = 254

/** Allows the dot-atom of RFC 5322 and a plain host name, but no quoting. So no part has a special meaning in a mail header. */
const address =
  /^(?=.{1,64}@)[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*@([a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*)$/

const isHost = (host: string) => host.split('.').every((label) => !label.startsWith('-') && !label.endsWith('-'))

/** Changes only A to Z to lower case. Other letters, such as the Kelvin sign, belong to a different address. */
export const foldAddress = (given: string): string => given.replace(/[A-Z]/g, (letter) => letter.toLowerCase())

/** Reads an e-mail address and returns it in lower case. Throws 400 if the text is no e-mail address. */
export const readAddress = (field: string, given: string): string => {
  const folded = foldAddress(given.trim())
  const [, host] = folded.length <= longest ? (address.exec(folded) ?? []) : []
  if (host === undefined || !isHost(host)) throw new Problem('bad_request', `${field} must be an e-mail address`)
  return folded
}
