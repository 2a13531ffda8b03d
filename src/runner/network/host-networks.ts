// Finds the host's gateways and networks, from all routing tables and all addresses of the host. Sandboxes cannot reach these
// gateways and networks, even if they are public.
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Logger } from '#src/kit/log.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { parseCidr, toText, withoutNested } from './cidr.ts'

type Hop = { gateway?: string; via?: { host?: string }; dev?: string }
type Route = Hop & { type?: string; dst: string; nexthops?: Hop[] }
type Address = { ifname: string; addr_info?: { local?: string; address?: string; prefixlen?: number }[] }

/**
 * A route with a shorter prefix than this counts as a default route. A VPN, for example, uses two routes, each to one half of all
 * addresses.
 */
const shortestNetwork = 8
/**
 * Maximum number of the host's networks that are closed to sandboxes. The limit exists because a host may have routes for the whole
 * Internet. Gateways and the networks of the host's addresses come first.
 */
const mostNetworks = 4096
const restMs = 50
const againMs = 1000

const isOurLink = (name: string | undefined) => /^al[0-9a-f]{6}[1-9]\d*$/.test(name ?? '')

const bitsOf = (dst: string) => (dst === 'default' ? 0 : (parseCidr(dst)?.bits ?? 32))

const hopsOf = (route: Route): Hop[] => [route, ...(route.nexthops ?? [])]

const gatewaysOf = (route: Route) => hopsOf(route).flatMap(({ gateway, via }) => [gateway ?? via?.host ?? []].flat())

/**
 * Returns the networks that must be closed to sandboxes:
 * - all gateways
 * - the networks of the host's addresses
 * - networks to which a route leads without a gateway
 * - networks behind a device that has no default route, such as a VPN
 */
export const networksOfHost = (routes: readonly Route[], addresses: readonly Address[]): string[] => {
  const unicast = routes.filter(({ type = 'unicast', dev }) => type === 'unicast' && !isOurLink(dev))
  const isWayOut = (route: Route) => bitsOf(route.dst) < shortestNetwork
  const waysOut = new Set(unicast.filter(isWayOut).flatMap((route) => hopsOf(route).map(({ dev }) => dev)))
  const isBehindWayOut = (route: Route) =>
    gatewaysOf(route).length > 0 && hopsOf(route).some(({ dev }) => dev !== undefined && waysOut.has(dev))
  const near = unicast.filter((route) => !isWayOut(route) && !isBehindWayOut(route)).map(({ dst }) => dst)
  const ofAddresses = addresses
    .filter(({ ifname }) => !isOurLink(ifname))
    .flatMap(({ addr_info = [] }) => addr_info)
    .filter(({ prefixlen = 32 }) => prefixlen >= shortestNetwork)
    .flatMap(({ local, address, prefixlen = 32 }) =>
      address === undefined ? [`${local}/${prefixlen}`] : [`${local}`, `${address}/${prefixlen}`],
    )
  const blocks = [...unicast.flatMap(gatewaysOf), ...ofAddresses, ...near]
    .map(parseCidr)
    .filter((block) => block !== undefined)
  const distinct = [...new Map(blocks.map((block) => [toText(block), block])).values()].slice(0, mostNetworks)
  return withoutNested(distinct).map(toText).sort()
}

export const readHostNetworks = async (): Promise<string[]> => {
  const [routes, addresses] = await Promise.all([
    runCommand(['ip', '-j', '-4', 'route', 'show', 'table', 'all']),
    runCommand(['ip', '-j', '-4', 'addr', 'show']),
  ])
  return networksOfHost(JSON.parse(routes || '[]'), JSON.parse(addresses || '[]'))
}

/**
 * Calls `changed` shortly after each change of the host's routes or addresses. Ignores changes of the network interfaces of
 * sandboxes.
 */
export class HostNetworksWatch {
  readonly #changed: () => void
  readonly #log: Logger
  #monitor: ChildProcess | undefined
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(changed: () => void, log: Logger) {
    this.#changed = changed
    this.#log = log
    this.#start()
  }

  #start() {
    const monitor = spawn('ip', ['-4', '-o', 'monitor', 'route', 'address', 'link', 'nexthop'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    this.#monitor = monitor
    monitor.on('error', (error) => this.#log.error({ err: error }, 'changes of the host’s routes cannot be followed'))
    monitor.once('close', () => {
      if (this.#closed) return
      // When `ip monitor` has been started again, call `changed`: the host's networks may have changed while `ip monitor` did not
      // run.
      this.#timer = setTimeout(() => {
        this.#timer = undefined
        this.#start()
        this.#soon()
      }, againMs).unref()
    })
    createInterface(monitor.stdout).on('line', (line) => {
      if (!/\bal[0-9a-f]{6}[1-9]\d*\b/.test(line)) this.#soon()
    })
    monitor.unref()
    ;(monitor.stdout as unknown as { unref?: () => void }).unref?.()
  }

  #soon() {
    if (this.#closed) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#changed()
    }, restMs).unref()
  }

  close() {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#monitor?.kill('SIGKILL')
  }
}
