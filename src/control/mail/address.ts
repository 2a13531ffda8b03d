// E-mail addresses as people type them, and when two are the same.
import { Problem } from '#src/problems.ts'

const longest = 254

/** RFC 5322's dot-atom and plain host names; no quoting, so nothing in it can mean anything in a header. */
const address =
  /^(?=.{1,64}@)[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*@([a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*)$/

const isHost = (host: string) => host.split('.').every((label) => !label.startsWith('-') && !label.endsWith('-'))

/** Lower case for A to Z only: an address with other letters that turn into these (such as the Kelvin sign) is somebody else's. */
export const foldAddress = (given: string): string => given.replace(/[A-Z]/g, (letter) => letter.toLowerCase())

/** Answers the address in lower case, or says that it is none. */
export const readAddress = (field: string, given: string): string => {
  const folded = foldAddress(given.trim())
  const [, host] = folded.length <= longest ? (address.exec(folded) ?? []) : []
  if (host === undefined || !isHost(host)) throw new Problem('bad_request', `${field} must be an e-mail address`)
  return folded
}
