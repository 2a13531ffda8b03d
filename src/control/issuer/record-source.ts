// Remembers from which network a call to Alcove's own issuer comes: the caller's IPv4 address, or the /48 of the
// caller's IPv6 address. When records.ts stores a record during the call, it asks this file for the network, because
// oidc-provider does not tell records.ts who calls.
import { AsyncLocalStorage } from 'node:async_hooks'
import { networkOf } from '#src/kit/network-of.ts'
import { siteGroups } from '../rate-limits/address-key.ts'

const source = new AsyncLocalStorage<string>()

/**
 * Runs `work`, a call to our issuer that comes from the IP address `address`. Each record that oidc-provider stores
 * during the call, such as a session, gets the network of this address.
 */
export const beginFrom = <T>(address: string, work: () => T): T => source.run(networkOf(address, siteGroups), work)

/** During a call to our issuer, returns the network of the caller. Otherwise undefined. */
export const sourceOfRecords = (): string | undefined => source.getStore()
