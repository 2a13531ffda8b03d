// The source of a record of our own issuer: the caller's network, which oidc-provider does not pass on to its storage.
import { AsyncLocalStorage } from 'node:async_hooks'
import { networkOf } from '#src/kit/network-of.ts'
import { siteGroups } from '../rate-limits/address-key.ts'

const source = new AsyncLocalStorage<string>()

/** Runs `work`, and stores the network of `address` with each record that `work` creates. */
export const beginFrom = <T>(address: string, work: () => T): T => source.run(networkOf(address, siteGroups), work)

/** The network of the call that is creating a record now. */
export const sourceOfRecords = (): string | undefined => source.getStore()
