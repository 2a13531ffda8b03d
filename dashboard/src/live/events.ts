// What the server tells while a page is open: changes of sandboxes, over Socket.IO. After a break everything that is
// shown is fetched again, because events of the time between are lost.
import type { QueryClient } from '@tanstack/react-query'
import { io } from 'socket.io-client'
import type { Sandbox, SandboxRow } from '../api/client.ts'
import { session } from '../session/session.ts'
import { applyChange, hasAll, type ListPages, replaceRows } from './apply-change.ts'

export type SandboxChange = { sandbox: SandboxRow; newState: SandboxRow['state']; oldState?: SandboxRow['state'] }

/** For how long changes are gathered before the lists are drawn again, in ms. */
const gatherMilliseconds = 250
/** A longer list is not fetched again for a new sandbox: its reader has scrolled away from the beginning. */
const mostPagesFetched = 5
/** How long a refused connection waits before it is tried again, in ms. */
const refusedMilliseconds = 5000

/** Keeps what is shown up to date until the returned function is called. `onLink` hears whether events arrive. */
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
      // Only the server knows whether a sandbox fits the filters of a list.
      if (!takesAll && !hasAll(list, rows) && list.pages.length <= mostPagesFetched)
        void queries.invalidateQueries({ queryKey })
    }
    for (const row of rows) {
      queries.setQueryData<Sandbox>([organizationId, 'sandbox', row.id], (before) => before && { ...before, ...row })
      void queries.invalidateQueries({ queryKey: [organizationId, 'sandbox', row.id] })
    }
  }
  // The forks of sandboxes: rows change in their places, and a new fork makes its parent's list old.
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
    // The library does not connect again by itself after this reason, which the end of a token has too.
    if (reason === 'io server disconnect') socket.connect()
  })
  socket.on('connect_error', () => {
    onLink(false)
    // The credential was refused: the library does not try again by itself.
    if (!socket.active)
      retry = setTimeout(() => void session.renewRefused().then(() => socket.connect()), refusedMilliseconds)
  })
  socket.on('sandbox.created', (row: SandboxRow) => {
    hasNewFork ||= row.forkKind !== undefined
    gather(row)
  })
  socket.on('sandbox.state.updated', ({ sandbox }: SandboxChange) => gather(sandbox))
  // A mishap changes no state, but the timeline of its sandbox.
  socket.on('sandbox.mishap', ({ sandbox }: Pick<SandboxChange, 'sandbox'>) => gather(sandbox))
  return () => {
    clearTimeout(timer)
    clearTimeout(retry)
    socket.disconnect()
  }
}
