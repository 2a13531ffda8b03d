// What a sandbox may reach, as callers write it: one text of IPv4 CIDRs with commas between them.
import { isIPv4 } from 'node:net'
import { Problem } from '#src/problems.ts'

const mostCidrs = 10

const isCidr = (text: string): boolean => {
  const [address, length, ...rest] = text.split('/')
  return (
    address !== undefined &&
    isIPv4(address) &&
    rest.length === 0 &&
    length !== undefined &&
    /^\d{1,2}$/.test(length) &&
    Number(length) <= 32
  )
}

/** The CIDRs of a list, each checked; `null` where there is none. An empty text is "no list". */
export const checkAllowList = (given: string | null | undefined): string[] | null => {
  const cidrs = (given ?? '')
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')
  if (cidrs.length === 0) return null
  if (cidrs.length > mostCidrs) {
    throw new Problem('bad_request', `networkAllowList holds at most ${mostCidrs} CIDRs, not ${cidrs.length}`)
  }
  const wrong = cidrs.find((each) => !isCidr(each))
  if (wrong !== undefined) {
    throw new Problem(
      'bad_request',
      `networkAllowList must be IPv4 CIDRs such as 10.0.0.0/8, not "${wrong.slice(0, 60)}"`,
    )
  }
  return [...new Set(cidrs)]
}
