// Reads a log from a WebSocket with as little processor time as `cat` needs for a file, so that their times can be compared. The
// reader checks only the last bytes, and does not parse frames. It is started before the measurement.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'

const program = `
import socket, sys
host, port, request = sys.stdin.readline().strip(), int(sys.stdin.readline()), bytes.fromhex(sys.stdin.readline().strip())
connection = socket.create_connection((host, port))
connection.sendall(request)
goodbye = bytes([0x88, 2, 0x03, 0xE8])  # the close frame of a server that says that all is well
memory = memoryview(bytearray(256 * 1024))
last, count = b'', 0
while last != goodbye:
    size = connection.recv_into(memory)
    if size == 0: sys.exit('the log ended without a goodbye')
    count += size
    last = (last + bytes(memory[max(0, size - 4):size]))[-4:]
print(count)
`

export type Reader = {
  /** Reads until the server sends its last bytes. Returns how many bytes have come. */
  readWhole: (url: URL, key: string) => Promise<number>
}

export const openReader = async (): Promise<Reader> => {
  const python = spawn('python3', ['-u', '-c', program], { stdio: ['pipe', 'pipe', 'inherit'] })
  await once(python, 'spawn')
  const readWhole = async (url: URL, key: string): Promise<number> => {
    const head = [
      `GET ${url.pathname}${url.search} HTTP/1.1`,
      `Host: ${url.host}`,
      `Authorization: Bearer ${key}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      `Sec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}`,
    ]
    const request = Buffer.from(`${head.join('\r\n')}\r\n\r\n`)
    python.stdin.end(`${url.hostname}\n${url.port}\n${request.toString('hex')}\n`)
    const bytes = Number(await text(python.stdout))
    if (!(bytes > 0)) throw new Error('the log was not read')
    return bytes
  }
  return { readWhole }
}
