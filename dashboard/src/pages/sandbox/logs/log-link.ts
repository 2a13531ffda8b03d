// Follows one log over a WebSocket. Each connection begins with the log's first kept byte, so that nothing is lost by a
// break, and what was shown is replaced.
import { waitAfter } from '../terminal/waits.ts'

export type LogState =
  | { name: 'connecting' }
  | { name: 'following' }
  /** The log is whole: its command has ended. */
  | { name: 'ended' }
  | { name: 'waiting'; reason: string }

export type LogSocket = Pick<WebSocket, 'close'> & {
  onopen: ((event: Event) => void) | null
  onmessage: ((event: MessageEvent) => void) | null
  onclose: ((event: CloseEvent) => void) | null
}

export type LogParts = {
  open: () => Promise<LogSocket>
  /** Asks why connecting failed. Throws a sentence; undefined: nothing is known. */
  ask: () => Promise<unknown>
  onState: (state: LogState) => void
  /** Called when a connection begins: the log comes from its beginning. */
  onBegin: () => void
  onData: (data: Uint8Array) => void
}

const ended = 1000

/** Follows until the log has ended or the returned function is called. */
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
