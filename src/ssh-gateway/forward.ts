// A `direct-tcpip` channel: a connection to a port on the sandbox's own loopback. Each direction of the connection can end before
// the other.
import type { ServerChannel } from 'ssh2'
import type { WebSocket } from 'ws'
import { ChannelOut } from './channel.ts'
import type { Peer } from './peer.ts'

/** Whether the name means the sandbox's own loopback. A forwarded port leads to no other host. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host)

/** Maximum number of bytes that wait for the gate. Above this number, nothing more is read from the client. */
const aheadBytes = 256 * 1024

export class Forward {
  readonly #out: ChannelOut
  readonly #socket: WebSocket

  constructor(peer: Peer, channel: ServerChannel, socket: WebSocket) {
    const out = new ChannelOut(peer, channel)
    this.#out = out
    this.#socket = socket
    socket.on('message', (data, isBinary) => {
      if (!isBinary) return void out.after(() => channel.eof?.())
      socket.pause()
      void out.write(channel, data as Buffer).then(() => socket.resume())
    })
    socket.once('close', () => {
      void out.after(() => {
        if (out.isGone) return
        channel.end()
        channel.resume()
      })
    })
    channel.on('data', (data: Buffer) => {
      if (socket.readyState !== socket.OPEN) return
      socket.send(data, () => {
        if (channel.isPaused() && socket.bufferedAmount < aheadBytes) channel.resume()
      })
      if (socket.bufferedAmount >= aheadBytes) channel.pause()
      peer.noteRead()
    })
    channel.once('end', () => {
      if (socket.readyState === socket.OPEN) socket.send('eof')
    })
    // The gateway does not use `stderr` here, so `stderr` ends only if the client closes the channel. The library `ssh2` then ends
    // `stderr` immediately, even if bytes of the channel still wait to be sent.
    channel.stderr.once('finish', () => this.leave())
  }

  leave(): void {
    this.#out.leave()
    this.#socket.terminate()
    this.#out.channel.resume()
  }
}
