// Opens a WebSocket to the gate for a command or a port. The client's SSH token is the credential.
import type { IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'
import { readWhole } from '#src/kit/read-whole.ts'

/** Maximum size in bytes of a message from the gate. A piece of output has at most 256 KiB. */
const messageBytes = 1024 * 1024
const openMs = 15_000
const refusalBytes = 64 * 1024

/** The gate's refusal. Its message is for the client. */
export class Refused extends Error {
  override name = 'Refused'
}

export type GateParts = { gateUrl: URL }

const messageOf = async (answer: IncomingMessage): Promise<string> => {
  try {
    const text = (await readWhole(answer, refusalBytes, () => new Error('too long'))).toString()
    const { message } = JSON.parse(text) as { message?: unknown }
    // SDKs search for this question at the end of the gate's message. A person does not need the question.
    if (typeof message === 'string') return message.replace(/ Is the Sandbox started\?$/, '')
  } catch {
    // The body of the gate's answer cannot be parsed. The returned sentence then contains only the answer's status.
  }
  return `The gate refused the call (${answer.statusCode}).`
}

/** Opens the socket. Throws Refused with a sentence for the client. */
export const openGateSocket = (
  { gateUrl }: GateParts,
  { sandboxId, token, path }: { sandboxId: string; token: string; path: string },
): Promise<WebSocket> => {
  const url = new URL(`/toolbox/${encodeURIComponent(sandboxId)}${path}`, gateUrl)
  url.protocol = 'ws:'
  const socket = new WebSocket(url, {
    headers: { authorization: `Bearer ${token}` },
    perMessageDeflate: false,
    maxPayload: messageBytes,
    handshakeTimeout: openMs,
  })
  const opening = Promise.withResolvers<WebSocket>()
  socket.once('open', () => opening.resolve(socket))
  socket.on('error', (cause) => opening.reject(new Refused('The gate does not answer; try again.', { cause })))
  socket.once('unexpected-response', (request, answer) => {
    messageOf(answer).then((message) => {
      opening.reject(new Refused(message))
      request.destroy()
    })
  })
  return opening.promise
}
