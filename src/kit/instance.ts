// The short name of a server, computed from its data directory. The short name is in every name that a server makes for the whole
// host, because a host may have several servers.
import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'

/** Returns the instance's name: six lower-case hex characters, equal for every spelling of the path. The directory must exist. */
export const instanceOf = (dataDirectory: string): string =>
  createHash('sha256').update(realpathSync(dataDirectory)).digest('hex').slice(0, 6)

/** Returns the directory for a server's sockets and other things that a reboot removes. */
export const runDirectoryOf = (instance: string): string => `/run/alcove-${instance}`

/** The directory with the sockets of all agents on this host. It must contain nothing else, because every gate sees all of it. */
export const allAgentSockets = '/run/alcove/agents'

export const agentSocketsOf = (instance: string): string => `${allAgentSockets}/${instance}`
