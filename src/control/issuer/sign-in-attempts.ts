// Limits wrong passwords, whether or not an account exists. Attackers cannot lock out the owner of an account:
// - A known browser has its own allowance, which nobody else can use up.
// - New browsers of one source (an IPv4 address or an IPv6 /64) share a limit, and so do new browsers of one site (a /48).
// - New browsers of one source have a lower limit for each name with which they sign in: an e-mail address or a one-time link.
// - While a name is attacked from anywhere, each source has fewer attempts for this name, but always some.
import { createHmac } from 'node:crypto'
import { networkOf } from '#src/kit/network-of.ts'
import { createAddressKeys, siteGroups } from '../rate-limits/address-key.ts'
import type { Counted, SharedCounters } from '../rate-limits/shared-counters.ts'

const quarter = 15 * 60
const hour = 60 * 60

/** Number of wrong passwords that are allowed. A right password is not counted. */
export const allowed = {
  /** Wrong passwords for one account from a browser in which somebody has signed in to this account before, per hour. */
  browser: 50,
  /** Wrong passwords from one IPv4 address or IPv6 /64, per quarter of an hour. */
  source: 20,
  /** Wrong passwords from one IPv6 /48, per quarter of an hour. A /48 has 65,536 /64s, each with a limit of its own (`source`). */
  site: 100,
  /** Wrong passwords for one name from one IPv4 address or IPv6 /64, per quarter of an hour. */
  sourceAndName: 10,
  /** The limit that replaces `sourceAndName` while the name is under attack (`attackedAfter`). */
  sourceAndAttackedName: 3,
  /**
   * A name (an e-mail address or a one-time link) is under attack after this many wrong passwords in an hour. Wrong passwords
   * from a known browser count only above the limit `browser`.
   */
  attackedAfter: 50,
}

/** Thrown if an attempt to sign in exceeds a limit. */
export class TooManyAttempts extends Error {
  readonly retryAfterSeconds: number

  constructor({ msBeforeNext }: Pick<Counted, 'msBeforeNext'>) {
    super('too many wrong passwords')
    this.retryAfterSeconds = Math.max(1, Math.ceil(msBeforeNext / 1000))
  }
}

type From = { address: string; name: string; browser: string | undefined }

/** Counts an attempt as failed before the password is checked. Call the returned function if the password was right. */
export type SignInAttempts = (from: From) => Promise<() => Promise<void>>

const nameSlots = 65_536
/**
 * Number of possible counters for pairs of a network and a name: so many that two pairs hardly ever share a counter. Few of
 * these counters exist, because an attempt beyond the limit `allowed.source` creates no counter.
 */
const pairSlots = 2 ** 32

export const createSignInAttempts = (counters: SharedCounters): SignInAttempts => {
  const { secret } = counters
  const counter = (what: string, seconds: number) => counters.counter(`wrong passwords by ${what}`, seconds)
  const byBrowser = counter('browser', hour)
  const bySource = counter('source', quarter)
  const bySite = counter('site', quarter)
  const byPair = counter('pair', quarter)
  const byName = counter('name', hour)
  const sourceOf = createAddressKeys(secret)
  const siteOf = createAddressKeys(secret, siteGroups)
  const slotOf = (text: string, slots: number) =>
    String(createHmac('sha256', secret).update(text).digest().readUInt32BE(0) % slots)

  const check = (counted: Counted | null, most: number) => {
    if (counted !== null && counted.consumedPoints > most) throw new TooManyAttempts(counted)
  }

  const countNewBrowser = async (address: string, name: string) => {
    const [source, site, nameKey] = [sourceOf(address), siteOf(address), slotOf(name, nameSlots)]
    // In `byPair`, two pairs of a network and a name hardly ever share a counter. So no network can use up the attempts of
    // another network for a name. In `bySource`, several networks may share a counter.
    const pair = slotOf(`${networkOf(address)} ${name}`, pairSlots)
    // When a source (a /64) has reached its limit, its wrong passwords no longer count for the site (a /48).
    // So one busy source cannot use up the attempts of the site.
    const ofSite = await bySite.get(site)
    if (ofSite !== null && ofSite.consumedPoints >= allowed.site) throw new TooManyAttempts(ofSite)
    check(await bySource.add(source), allowed.source)
    const ofName = await byName.get(nameKey)
    const isAttacked = ofName !== null && ofName.consumedPoints >= allowed.attackedAfter
    check(await byPair.add(pair), isAttacked ? allowed.sourceAndAttackedName : allowed.sourceAndName)
    await Promise.all([bySite.add(site), byName.add(nameKey)])
    return async () => {
      await Promise.all([
        bySource.giveBack(source),
        bySite.giveBack(site),
        byPair.giveBack(pair),
        byName.giveBack(nameKey),
      ])
    }
  }

  return async ({ address, name, browser }) => {
    if (browser !== undefined) {
      const counted = await byBrowser.add(browser)
      if (counted.consumedPoints <= allowed.browser) return async () => void (await byBrowser.giveBack(browser))
      // A known browser first uses its own limit (`allowed.browser`). Wrong passwords above that limit are counted like
      // those of a new browser.
    }
    return await countNewBrowser(address, name)
  }
}
