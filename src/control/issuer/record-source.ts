// Remembers from which network a call to Alcove's own issuer comes: an IPv4 address, or the /48 of an IPv6 address.
// records.ts asks for it when it stores a record, because oidc-provider does not tell who calls.
import { AsyncLocalStorage } from 'node:async_hooks'
import { networkOf } from '#src/kit/network-of.ts'
import { siteGroups } from '../rate-limits/address-key.ts'

const source = new AsyncLocalStorage<string>()

/** Runs `work`, a call to our issuer. Each record that oidc-provider stores during the call gets the network of `address`. */
export const beginFrom = <T>(address: string, work: () => T): T => source.run(networkOf(address, siteGroups), work)

/** During a call to our issuer, returns the network of the caller. Otherwise undefined. */
export const sourceOfRecords = (): string | undefined => source.getStore()
