// The network policy of a sandbox, as callers write it: lists of IPv4 CIDRs and of domains. Traffic to an item of either list is
// allowed. Without lists, the public Internet is allowed. If all traffic is blocked, the lists have no effect.
import { isIPv4 } from 'node:net'
import { domainToASCII } from 'node:url'
import { Problem } from '#src/problems.ts'
import { isDomainName } from '#src/wire/domain.ts'

export type NetworkColumns = {
  network_block_all: boolean
  network_allow_list: string[] | null
  domain_allow_list: string[] | null
}

type RequestedNetwork = {
  networkBlockAll?: boolean | null | undefined
  networkAllowList?: string | null | undefined
  domainAllowList?: string | null | undefined
}

const mostItems = 10

/** Refuses a list of only commas and spaces. Such a list would mean "no list", which opens the whole Internet. */
const itemsOf = (field: string, given: string | null | undefined): string[] => {
  const items = (given ?? '')
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')
  if (given && items.length === 0) {
    throw new Problem('bad_request', `${field} has only commas or spaces; to set no list, send an empty text`)
  }
  if (items.length <= mostItems) return items
  throw new Problem('bad_request', `${field} holds at most ${mostItems} items, not ${items.length}`)
}

const listOf = (items: readonly string[]): string[] | null => (items.length === 0 ? null : [...new Set(items)])

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

/** Checks each CIDR of a list, and removes duplicates. */
export const checkAllowList = (given: string | null | undefined): string[] | null => {
  const cidrs = itemsOf('networkAllowList', given)
  const wrong = cidrs.find((each) => !isCidr(each))
  if (wrong === undefined) return listOf(cidrs)
  throw new Problem(
    'bad_request',
    `networkAllowList must be IPv4 CIDRs such as 203.0.113.0/24, not "${wrong.slice(0, 60)}"`,
  )
}

/** Converts a domain to lower-case ASCII (punycode) without a dot at its end. Returns undefined if the text is no domain. */
const readDomain = (text: string): string | undefined => {
  const star = text.startsWith('*.') ? '*.' : ''
  const name = text.slice(star.length).replace(/\.$/, '')
  // Names with these characters are refused, because the URL parser would silently cut off the host name at such a character.
  if (/[%/\\?#@:[\]]/.test(name)) return undefined
  const ascii = domainToASCII(name)
  const isName = ascii.length <= 253 - star.length && isDomainName(ascii) && !isIPv4(ascii)
  return isName ? star + ascii : undefined
}

/** Checks each domain of a list, converts it to lower-case ASCII (punycode), and removes duplicates. */
export const checkDomainList = (given: string | null | undefined): string[] | null =>
  listOf(
    itemsOf('domainAllowList', given).map((each) => {
      const domain = readDomain(each)
      if (domain !== undefined) return domain
      throw new Problem(
        'bad_request',
        `domainAllowList must be names such as example.com or *.example.com, not "${each.slice(0, 60)}"`,
      )
    }),
  )

/**
 * Returns the network columns of a new sandbox. `isLimited`: outgoing traffic is blocked if the create has no allow list and no
 * `networkBlockAll`.
 */
export const networkOfNew = (given: RequestedNetwork, isLimited: boolean): NetworkColumns => {
  const lists = {
    network_allow_list: checkAllowList(given.networkAllowList),
    domain_allow_list: checkDomainList(given.domainAllowList),
  }
  const hasList = lists.network_allow_list !== null || lists.domain_allow_list !== null
  return { network_block_all: given.networkBlockAll ?? (isLimited && !hasList), ...lists }
}

/**
 * Returns the columns that change. `networkBlockAll: false` without a list also removes both lists: the SDK promises that such a
 * change restores access to the Internet.
 */
export const networkChange = (given: RequestedNetwork): Partial<NetworkColumns> => {
  const { networkBlockAll, networkAllowList, domainAllowList } = given
  const has = (value: unknown) => value !== undefined && value !== null
  if (!has(networkBlockAll) && !has(networkAllowList) && !has(domainAllowList)) {
    throw new Problem('bad_request', 'networkBlockAll, networkAllowList or domainAllowList must be given')
  }
  const isOpened = networkBlockAll === false && !has(networkAllowList) && !has(domainAllowList)
  return {
    ...(typeof networkBlockAll === 'boolean' ? { network_block_all: networkBlockAll } : {}),
    ...(has(networkAllowList) || isOpened ? { network_allow_list: checkAllowList(networkAllowList) } : {}),
    ...(has(domainAllowList) || isOpened ? { domain_allow_list: checkDomainList(domainAllowList) } : {}),
  }
}
