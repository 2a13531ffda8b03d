// Follows one log over a WebSocket. Each new connection gets the whole stored log, which replaces the log on the page. So a broken
// connection loses nothing.
import { waitAfter } from '../terminal/waits.ts'

export type LogState =
  | { name: 'connecting' }
  | { name: 'following' }
  /** The command has ended, so the log is complete. */
  | { name: 'ended' }
  | { name: 'waiting'; reason: string }

export type LogSocket = Pick<WebSocket, 'close'> & {
  onopen: ((event: Event) => void) | null
  onmessage: ((event: MessageEvent) => void) | null
  onclose: ((event: CloseEvent) => void) | null
}

export type LogParts = {
  open: () => Promise<LogSocket>
  /**
   * Asks the server why the connection failed, and throws its reason as an error for the user. Returns if the server names no
   * reason.
   */
  ask: () => Promise<unknown>
  onState: (state: LogState) => void
  /** Called when a connection begins. The server then sends the log from its beginning, so the page must clear what it shows. */
  onBegin: () => void
  onData: (data: Uint8Array) => void
}

const ended = 1000

/** Follows a log until it has ended, or until the caller calls the function that is returned. */
export const followLog = (parts: LogParts): (() => void) => {
  let socket: LogSocket | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let failures = 0
  let isOver = false

  const failed = async (reason: string) => {
    failures += 1
    const why = await parts.ask().then(
      () => reason,
      (error: Error) => error.message,
    )
    if (isOver) return
    parts.onState({ name: 'waiting', reason: why })
    timer = setTimeout(() => void connect(), waitAfter(failures, Math.random()))
  }
  const connect = async () => {
    parts.onState({ name: 'connecting' })
    let opened: LogSocket
    try {
      opened = await parts.open()
    } catch (error) {
      if (!isOver) await failed((error as Error).message)
      return
    }
    if (isOver) {
      opened.close()
      return
    }
    socket = opened
    opened.onopen = () => {
      parts.onBegin()
      parts.onState({ name: 'following' })
    }
    opened.onmessage = ({ data }) => {
      if (isOver) return
      failures = 0
      parts.onData(typeof data === 'string' ? new TextEncoder().encode(data) : new Uint8Array(data as ArrayBuffer))
    }
    opened.onclose = ({ code, reason }) => {
      socket = undefined
      if (isOver) return
      if (code === ended) parts.onState({ name: 'ended' })
      else void failed(reason || 'The connection was lost.')
    }
  }
  void connect()
  return () => {
    isOver = true
    clearTimeout(timer)
    socket?.close()
  }
}
