/** What the server itself says about a terminal. Output of programs never comes this way. */
export type ControlMessage =
  | { status: 'connected' }
  | { status: 'exited'; exitCode: number | undefined; reason: string | undefined }
  | { status: 'error'; error: string }

/** Reads a text message of a terminal's socket. Undefined: not a message that this page knows. */
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
