// Remembers the caller's network during a call to Alcove's own issuer. The code that stores the issuer's rows reads it
// here, because oidc-provider does not tell that code who calls.
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
