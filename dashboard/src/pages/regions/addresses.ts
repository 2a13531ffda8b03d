// The addresses of a region's services as fields of a form, and the changes that the form sends.
import type { Region } from '../../api/use-regions.ts'

export const addressLabels = {
  proxyUrl: 'Proxy',
  sshGatewayUrl: 'SSH gateway',
  snapshotManagerUrl: 'Snapshot manager',
  otelEndpoint: 'Telemetry (OTLP)',
} as const

export type AddressName = keyof typeof addressLabels
export const addressNames = Object.keys(addressLabels) as AddressName[]
export type Addresses = Pick<Region, AddressName>
export type AddressForm = Record<AddressName, string>

const each = <T>(value: (name: AddressName) => T) =>
  Object.fromEntries(addressNames.map((name) => [name, value(name)])) as Record<AddressName, T>

export const addressesOf = (region: Addresses | undefined): AddressForm => each((name) => region?.[name] ?? '')

/** Returns the addresses in the form that differ from the region's present addresses. Null removes an address. */
export const changedAddresses = (region: Addresses | undefined, form: AddressForm): Partial<Addresses> =>
  Object.fromEntries(
    addressNames
      .map((name) => [name, form[name].trim() === '' ? null : form[name].trim()] as const)
      .filter(([name, value]) => value !== (region?.[name] ?? null)),
  )
