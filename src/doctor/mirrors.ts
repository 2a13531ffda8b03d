// Finds out whether mirrors of packages and images are at private addresses. Sandboxes and pulls reach only public
// addresses, unless a setting allows more.
import { lookup } from 'node:dns/promises'
import { isPublicAddress, isWithin, type Networks } from '#src/kit/networks.ts'
import type { Finding, Probe } from './finding.ts'

/**
 * `packages` are the hosts from which this host's apt installs. `images` are the hosts of registry mirrors. Both may have a
 * port.
 */
export type Mirrors = {
  packages: readonly string[]
  images: readonly string[]
  /**
   * From the operator's settings: the private networks that sandboxes may reach, and the registries that may be at
   * private addresses.
   */
  openNetworks: Networks
  privateRegistries: readonly string[]
}

type Resolve = (host: string) => Promise<readonly string[]>

const lookUpMs = 5000

const lookUp: Resolve = async (host) => {
  const late = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error(`${host} was not resolved within 5 s`)), lookUpMs).unref()
  })
  const found = await Promise.race([lookup(host, { all: true, family: 4 }), late])
  return found.map(({ address }) => address)
}

const nameOf = (host: string) => host.replace(/:\d+$/, '')

/**
 * Looks up each host once. `isOpen`: whether sandboxes or pulls may reach an address. `closed`: hosts with an address that is not
 * open. `text`: all hosts and addresses, for the operator.
 */
const placesOf = async (hosts: readonly string[], isOpen: (address: string) => boolean, resolve: Resolve) => {
  const places = await Promise.all(
    [...new Set(hosts)].map(async (host) => {
      const addresses = await resolve(nameOf(host)).catch(() => [])
      return { host, addresses, closed: addresses.filter((address) => !isOpen(address)) }
    }),
  )
  const text = places
    .map(({ host, addresses }) => `${host} ${addresses.length === 0 ? 'has no address' : `at ${addresses.join(', ')}`}`)
    .join('; ')
  return { places, closed: places.filter(({ closed }) => closed.length > 0), text: text === '' ? 'none' : text }
}

/**
 * Returns what the operator can do about `closed`, the mirrors that sandboxes cannot reach. No setting lets sandboxes use an apt
 * proxy on the host itself.
 */
const remedyFor = (closed: readonly string[]): string => {
  const openable = closed.filter((address) => !address.startsWith('127.'))
  return openable.length === 0
    ? 'a mirror on another machine: this host is closed to sandboxes'
    : `ALCOVE_OPEN_NETWORKS=${openable.join(',')}`
}

/** Returns the probe of the mirrors from which this host's apt installs packages. apt in sandboxes uses these mirrors too. */
export const packageMirrors = ({ packages, openNetworks }: Mirrors, resolve: Resolve = lookUp): Probe => ({
  name: 'package mirrors',
  run: async (): Promise<Finding> => {
    const isOpen = (address: string) => isPublicAddress(address) || isWithin(openNetworks, address)
    const { closed, text } = await placesOf(packages, isOpen, resolve)
    if (closed.length === 0) return { name: 'package mirrors', status: 'ok', found: text }
    return {
      name: 'package mirrors',
      status: 'warn',
      found: text,
      costs: `sandboxes and RUN lines cannot install packages from ${closed.map(({ host }) => host).join(', ')}: private addresses are closed to them`,
      remedy: remedyFor([...new Set(closed.flatMap(({ closed }) => closed))]),
    }
  },
})

/** Returns the probe of the registry mirrors in the operator's settings. */
export const registryMirrors = ({ images, privateRegistries }: Mirrors, resolve: Resolve = lookUp): Probe => ({
  name: 'registry mirrors',
  run: async (): Promise<Finding> => {
    const asked = images.filter((host) => !privateRegistries.includes(host))
    const { closed } = await placesOf(asked, isPublicAddress, resolve)
    const { text } = await placesOf(images, isPublicAddress, resolve)
    if (closed.length === 0) return { name: 'registry mirrors', status: 'ok', found: text }
    const hosts = closed.map(({ host }) => host)
    return {
      name: 'registry mirrors',
      status: 'warn',
      found: text,
      costs: `images are not pulled from ${hosts.join(', ')}: private addresses are closed to pulls`,
      remedy: `ALCOVE_PRIVATE_REGISTRIES=${[...privateRegistries, ...hosts].join(',')}`,
    }
  },
})
