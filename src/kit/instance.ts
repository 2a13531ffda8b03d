// The short name of one server on its host. Several servers may share a host, so every host-wide thing that a server
// makes (cgroup, network namespace, bridge, nft table, crun root) carries the name of its data directory.
import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'

/** Six lower hex characters, always the same for the same (existing) data directory, however its path is written. */
export const instanceOf = (dataDirectory: string): string =>
  createHash('sha256').update(realpathSync(dataDirectory)).digest('hex').slice(0, 6)

/** Where the sockets and runtime state of a server live; gone after a reboot, as they should be. */
export const runDirectoryOf = (instance: string): string => `/run/alcove-${instance}`

/** The sockets of the agents of all runners of this host. It holds nothing else, as it is all that a gate sees of them. */
export const allAgentSockets = '/run/alcove/agents'

export const agentSocketsOf = (instance: string): string => `${allAgentSockets}/${instance}`
