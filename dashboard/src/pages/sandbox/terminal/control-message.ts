/** A text message with the state of a terminal. Output of programs comes in binary messages. */
export type ControlMessage =
  | { status: 'connected' }
  | { status: 'exited'; exitCode: number | undefined; reason: string | undefined }
  | { status: 'error'; error: string }

/** Reads a text message of a terminal's WebSocket. Undefined if this page does not know the message. */
export const readControl = (text: string): ControlMessage | undefined => {
  let message: Record<string, unknown>
  try {
    message = JSON.parse(text) as Record<string, unknown>
  } catch {
    return undefined
  }
  if (typeof message !== 'object' || message === null || message['type'] !== 'control') return undefined
  const { status, exitCode, exitReason, error } = message
  if (status === 'connected') return { status }
  if (status === 'exited')
    return {
      status,
      exitCode: typeof exitCode === 'number' ? exitCode : undefined,
      reason: typeof exitReason === 'string' ? exitReason : undefined,
    }
  if (status === 'error') return { status, error: typeof error === 'string' ? error : 'The terminal failed.' }
  return undefined
}
