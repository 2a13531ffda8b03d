// The short name of one server on its host, made from its data directory. Several servers may share a host. So
// everything host-wide that a server makes (cgroup, network namespace, bridge, nft table, crun root) carries this name.
import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'

/**
 * The short name of a server: six lower-case hex characters. The directory must exist; every spelling of its path gives
 * the same name.
 */
export const instanceOf = (dataDirectory: string): string =>
  createHash('sha256').update(realpathSync(dataDirectory)).digest('hex').slice(0, 6)

/** Directory of a server's sockets and runtime state. A reboot removes it, which is intended. */
export const runDirectoryOf = (instance: string): string => `/run/alcove-${instance}`

/**
 * The directory of the agent sockets of all runners of this host. It must hold nothing else, because every gate sees
 * all of it.
 */
export const allAgentSockets = '/run/alcove/agents'

export const agentSocketsOf = (instance: string): string => `${allAgentSockets}/${instance}`
