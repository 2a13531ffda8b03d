// What the server tells while a page is open: changes of sandboxes, over Socket.IO. After a break everything that is
// shown is fetched again, because events of the time between are lost.
import type { QueryClient } from '@tanstack/react-query'
import { io } from 'socket.io-client'
import type { Sandbox, SandboxRow } from '../api/client.ts'
import { session } from '../session/session.ts'
import { applyChange, type ListPages } from './apply-change.ts'

export type SandboxChange = { sandbox: SandboxRow; newState: SandboxRow['state']; oldState?: SandboxRow['state'] }

/** For how long changes are gathered before the lists are drawn again, in ms. */
const gatherMilliseconds = 250

/** Keeps what is shown up to date until the returned function is called. `onLink` hears whether events arrive. */
export const follow = (
  queries: QueryClient,
  organizationId: string,
  onLink: (isConnected: boolean) => void,
): (() => void) => {
  const changed = new Map<string, SandboxRow>()
  let timer: ReturnType<typeof setTimeout> | undefined

  const draw = () => {
    timer = undefined
    const rows = [...changed.values()]
    changed.clear()
    queries.setQueriesData<ListPages>(
      { queryKey: [organizationId, 'sandboxes'] },
      (pages) => pages && applyChange(pages, rows),
    )
    for (const row of rows) {
      queries.setQueryData<Sandbox>([organizationId, 'sandbox', row.id], (before) => before && { ...before, ...row })
      void queries.invalidateQueries({ queryKey: [organizationId, 'sandbox', row.id] })
    }
    // A sandbox that no list has yet may belong into one.
    void queries.invalidateQueries({ queryKey: [organizationId, 'sandboxes', 'first'] })
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
    if (!socket.active) setTimeout(() => socket.connect(), 5000)
  })
  socket.on('sandbox.created', gather)
  socket.on('sandbox.state.updated', ({ sandbox }: SandboxChange) => gather(sandbox))
  return () => {
    clearTimeout(timer)
    socket.disconnect()
  }
}
