// The short name of a server on its host, computed from its data directory. A host may have several servers. So the
// names of everything that a server makes for the whole host (cgroup, network namespace, bridge, nft table, crun root)
// contain this short name.
import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'

/**
 * Returns the short name of a server: six lower-case hex characters. The directory must exist. Every spelling of its
 * path gives the same name.
 */
export const instanceOf = (dataDirectory: string): string =>
  createHash('sha256').update(realpathSync(dataDirectory)).digest('hex').slice(0, 6)

/**
 * Returns the directory for a server's sockets and other things that exist only while the host runs. A reboot removes
 * it.
 */
export const runDirectoryOf = (instance: string): string => `/run/alcove-${instance}`

/**
 * The directory with the sockets of all agents on this host, for all runners. It must contain nothing else, because
 * every gate sees all of it.
 */
export const allAgentSockets = '/run/alcove/agents'

export const agentSocketsOf = (instance: string): string => `${allAgentSockets}/${instance}`
