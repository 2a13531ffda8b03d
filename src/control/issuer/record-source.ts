// During a call to Alcove's own issuer, remembers the caller's network: an IPv4 address, or the /48 of an IPv6 address.
// To store a record, records.ts reads the network here, because oidc-provider does not tell who calls.
import { AsyncLocalStorage } from 'node:async_hooks'
import { networkOf } from '#src/kit/network-of.ts'
import { siteGroups } from '../rate-limits/address-key.ts'

const source = new AsyncLocalStorage<string>()

/** Runs `work`: a call to our issuer from `address`. Each record that oidc-provider makes meanwhile names the caller's network. */
export const beginFrom = <T>(address: string, work: () => T): T => source.run(networkOf(address, siteGroups), work)

/** During a call to our issuer, returns the network of the caller. Otherwise undefined. */
export const sourceOfRecords = (): string | undefined => source.getStore()
