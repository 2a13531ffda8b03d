// Listens for PostgreSQL's NOTIFY on a connection of its own. After a lost connection, retries without end; the driver's own
// `listen` stops at the first failure.
import { setTimeout as pause } from 'node:timers/promises'
import postgres, { type Options } from 'postgres'
import { openReplaceable } from './replaceable.ts'

type Listening = { onMessage: (payload: string) => void; onGap: () => void }

export type Listener = {
  /**
   * Receives notifications of `pg_notify(channel, payload)`. `onGap` runs after a lost connection. Notifications can be
   * lost, so receivers must also check the tables.
   */
  listen: (channel: string, onMessage: (payload: string) => void, onGap?: () => void) => Promise<void>
  close: () => Promise<void>
}

const retryMilliseconds = 250

export const createListener = (url: string, connection: Options<never>): Listener => {
  const channels = new Map<string, Listening[]>()
  let isClosed = false
  let isCatchingUp = false
  let closes = 0

  const replaceable = openReplaceable(
    (onclose) =>
      postgres(url, {
        ...(connection as object),
        max: 1,
        idle_timeout: 0,
        max_lifetime: null,
        connect_timeout: 5,
        backoff: () => retryMilliseconds / 1000,
        fetch_types: false,
        connection: { application_name: 'alcove-control-listener' },
        onnotice: () => {},
        onnotify: (channel: string, payload: string) => {
          for (const { onMessage } of channels.get(channel) ?? []) onMessage(payload)
        },
        onclose,
      } as Options<never>),
    () => {
      closes += 1
      void catchUp()
    },
  )
  const { sql } = replaceable

  const ask = (channel: string) => sql.unsafe(`listen "${channel.replaceAll('"', '""')}"`)

  const catchUp = async () => {
    if (isCatchingUp || channels.size === 0) return
    isCatchingUp = true
    while (!isClosed) {
      try {
        // If the connection is lost during this loop, the new connection does not listen on the earlier channels. So the loop runs
        // again.
        const before = closes
        for (const channel of channels.keys()) await ask(channel)
        if (closes === before) break
      } catch {
        await pause(retryMilliseconds, undefined, { ref: false })
      }
    }
    isCatchingUp = false
    if (isClosed) return
    for (const listening of channels.values()) for (const { onGap } of listening) onGap()
  }

  return {
    listen: async (channel, onMessage, onGap = () => {}) => {
      await ask(channel)
      channels.set(channel, [...(channels.get(channel) ?? []), { onMessage, onGap }])
    },
    close: async () => {
      isClosed = true
      await replaceable.close(1)
    },
  }
}
