// Domains of e-mail addresses, in the form in which they are stored and compared: lower case, in ASCII.
import { domainToASCII } from 'node:url'
import { Problem } from '#src/problems.ts'

const label = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?'
const pattern = new RegExp(`^(?=.{4,253}$)(?:${label}\\.)+(?!\\d+$)${label}$`)

const asDomain = (text: string): string | undefined => {
  // Refuses characters that no domain has. Some of these characters have a special meaning to a URL parser, for example `/` and
  // `:`.
  if (!/^[\p{L}\p{M}\p{N}.-]+$/u.test(text)) return undefined
  const domain = domainToASCII(text)
  return pattern.test(domain) ? domain : undefined
}

/**
 * Reads domains, removes duplicates and sorts them. Concurrent transactions that insert domains in the same order
 * cannot deadlock.
 */
export const readDomains = (given: readonly string[]): string[] => {
  const domains = given.map((text) => {
    const domain = asDomain(text.trim())
    if (domain === undefined) throw new Problem('bad_request', 'emailDomains must hold domains such as example.com')
    return domain
  })
  return [...new Set(domains)].sort()
}

/** Returns the domain of an e-mail address, or undefined if the domain is invalid. */
export const domainOf = (email: string): string | undefined => asDomain(email.slice(email.lastIndexOf('@') + 1))
