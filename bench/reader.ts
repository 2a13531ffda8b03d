// A reader of a WebSocket that costs next to nothing, so that what is measured is who sends.
import { once } from 'node:events'
import { connect } from 'node:net'

/** The close frame of a server, with the status that says that all is well. */
const goodbye = Buffer.of(0x88, 2, 0x03, 0xe8)
const readBytes = 256 * 1024

/** Counts what comes until the server says that this was all. Neither opens frames nor answers them. */
export const readWhole = async (url: URL, key: string): Promise<number> => {
  let bytes = 0
  let last: Buffer = Buffer.alloc(0)
  const socket = connect({
    host: url.hostname,
    port: Number(url.port),
    onread: {
      buffer: Buffer.alloc(readBytes),
      callback: (count, buffer) => {
        bytes += count
        last = Buffer.concat([last, buffer.subarray(Math.max(0, count - goodbye.length), count)]).subarray(
          -goodbye.length,
        )
        if (last.equals(goodbye)) socket.destroy()
        return true
      },
    },
  })
  const headers = [
    `Host: ${url.host}`,
    `Authorization: Bearer ${key}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}`,
  ]
  socket.write(`GET ${url.pathname}${url.search} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`)
  await once(socket, 'close')
  if (!last.equals(goodbye)) throw new Error('the log ended without a goodbye')
  return bytes
}
