// Receives events about changed sandboxes over Socket.IO and updates the lists on the page. A lost connection loses events, so all
// data of the organization is fetched again when the next connection is made.
import type { QueryClient } from '@tanstack/react-query'
import { io } from 'socket.io-client'
import type { Sandbox, SandboxRow } from '../api/client.ts'
import { session } from '../session/session.ts'
import { applyChange, hasAll, type ListPages, replaceRows } from './apply-change.ts'

export type SandboxChange = { sandbox: SandboxRow; newState: SandboxRow['state']; oldState?: SandboxRow['state'] }

/** Milliseconds for which the dashboard collects changes of sandboxes. Then the dashboard updates the lists once. */
const gatherMilliseconds = 250
/** A list with more loaded pages than this is not fetched again when it lacks a sandbox: its reader has scrolled far down. */
const mostPagesFetched = 5
/** How long to wait before the next attempt to connect after the server refused the credential, in ms. */
const refusedMilliseconds = 5000

/**
 * Updates the lists on the page at each event, until the caller calls the returned function. The function `onLink` gets true when
 * the connection is made. It gets false when the connection is lost or cannot be made.
 */
export const follow = (
  queries: QueryClient,
  organizationId: string,
  onLink: (isConnected: boolean) => void,
): (() => void) => {
  const changed = new Map<string, SandboxRow>()
  let hasNewFork = false
  let timer: ReturnType<typeof setTimeout> | undefined
  let retry: ReturnType<typeof setTimeout> | undefined

  const draw = () => {
    timer = undefined
    const rows = [...changed.values()]
    changed.clear()
    drawFamilies(rows, hasNewFork)
    hasNewFork = false
    for (const [queryKey, list] of queries.getQueriesData<ListPages>({ queryKey: [organizationId, 'sandboxes'] })) {
      if (list === undefined) continue
      const takesAll = Object.keys(queryKey[2] ?? {}).length === 0
      queries.setQueryData<ListPages>(queryKey, applyChange(list, rows, takesAll))
      // Only the server can decide whether a new sandbox matches the filters of the list, so the list is fetched again.
      if (!takesAll && !hasAll(list, rows) && list.pages.length <= mostPagesFetched)
        void queries.invalidateQueries({ queryKey })
    }
    for (const row of rows) {
      queries.setQueryData<Sandbox>([organizationId, 'sandbox', row.id], (before) => before && { ...before, ...row })
      void queries.invalidateQueries({ queryKey: [organizationId, 'sandbox', row.id] })
    }
  }
  // Updates the rows in all lists of forks and ancestors. These lists have no row for a new fork, so they are fetched again after a
  // fork.
  const drawFamilies = (rows: readonly SandboxRow[], hasNewFork: boolean) => {
    const queryKey = [organizationId, 'family']
    queries.setQueriesData<Pick<SandboxRow, 'id'>[]>({ queryKey }, (members) => members && replaceRows(members, rows))
    if (hasNewFork) void queries.invalidateQueries({ queryKey })
  }
  const gather = (row: SandboxRow) => {
    changed.set(row.id, row)
    timer ??= setTimeout(draw, gatherMilliseconds)
  }

  const socket = io(location.origin, {
    path: '/api/socket.io/',
    transports: ['websocket'],
    query: { organizationId },
    auth: (give) => void session.token().then((token) => give({ token })),
  })
  let wasConnected = false
  socket.on('connect', () => {
    onLink(true)
    if (wasConnected) void queries.invalidateQueries({ queryKey: [organizationId] })
    wasConnected = true
  })
  socket.on('disconnect', (reason) => {
    onLink(false)
    // The server has ended the connection, for example because a token has expired. In this case Socket.IO does not connect again
    // by itself.
    if (reason === 'io server disconnect') socket.connect()
  })
  socket.on('connect_error', () => {
    onLink(false)
    // The server has refused the credential. In this case Socket.IO does not connect again by itself.
    if (!socket.active)
      retry = setTimeout(() => void session.renewRefused().then(() => socket.connect()), refusedMilliseconds)
  })
  socket.on('sandbox.created', (row: SandboxRow) => {
    hasNewFork ||= row.forkKind !== undefined
    gather(row)
  })
  socket.on('sandbox.state.updated', ({ sandbox }: SandboxChange) => gather(sandbox))
  // Trouble inside a sandbox that runs on, such as a process killed for want of memory. The sandbox's state stays, and its timeline
  // gets an entry.
  socket.on('sandbox.mishap', ({ sandbox }: Pick<SandboxChange, 'sandbox'>) => gather(sandbox))
  return () => {
    clearTimeout(timer)
    clearTimeout(retry)
    socket.disconnect()
  }
}
