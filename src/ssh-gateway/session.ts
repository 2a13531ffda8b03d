// An SSH channel of the kind `session`: it runs a command, a shell or sftp in the sandbox of the client's connection.
import type { ServerChannel, Session } from 'ssh2'
import type { RawData, WebSocket } from 'ws'
import {
  type CommandStart,
  type FromCommand,
  inputWindowBytes,
  mostCommandBytes,
  mostVariables,
  streamNumbers,
  type ToCommand,
  variableBytes,
} from '#src/wire/ssh.ts'
import { ChannelOut } from './channel.ts'
import { Refused } from './gate-socket.ts'
import type { Peer } from './peer.ts'

/** Exit code of ssh(1) for its own errors. */
const ownFailure = 255
const mostSide = 1000

type Accept = (() => boolean) | undefined
type Size = { cols: number; rows: number }

const sideOf = (given: number, usual: number) => (given >= 1 ? Math.min(given, mostSide) : usual)

const sizeOf = ({ cols, rows }: Size): Size => ({ cols: sideOf(cols, 80), rows: sideOf(rows, 24) })

const hasNul = (text: string) => text.includes('\0')

const readTold = (bytes: Buffer): FromCommand | undefined => {
  try {
    return JSON.parse(bytes.toString()) as FromCommand
  } catch {
    return undefined
  }
}

export type SessionParts = {
  peer: Peer
  openSocket: (path: string) => Promise<WebSocket>
}

export class SshSession {
  readonly #parts: SessionParts
  readonly #env: Record<string, string> = {}
  #envBytes = 0
  #terminal: CommandStart['terminal']
  #out: ChannelOut | undefined
  #socket: WebSocket | undefined
  /** The client's messages before the start of the command, in order. Undefined after the start. */
  #early: ToCommand[] | undefined = []
  #credit = inputWindowBytes
  #pending: Buffer | undefined
  #hasEnded = false
  #isOver = false

  constructor(session: Session, parts: SessionParts) {
    this.#parts = parts
    const answer = (accept: Accept, reject: Accept, isFine: boolean) => void (isFine ? accept : reject)?.()
    session.on('env', (accept, reject, { key, val }) =>
      answer(accept as Accept, reject as Accept, this.#setVariable(key, val)),
    )
    session.on('pty', (accept, reject, info) => {
      const isFine = this.#out === undefined
      const { term } = info as { term?: string }
      if (isFine)
        this.#terminal = { ...sizeOf(info), term: /^[A-Za-z0-9._+-]{1,64}$/.test(term ?? '') ? term! : 'xterm' }
      answer(accept as Accept, reject as Accept, isFine)
    })
    session.on('window-change', (accept, reject, info) => {
      if (this.#terminal !== undefined) this.#say({ type: 'resize', ...sizeOf(info) })
      answer(accept as Accept, reject as Accept, this.#terminal !== undefined)
    })
    session.on('signal', (accept, reject, { name }) => {
      this.#say({ type: 'signal', signal: String(name).slice(0, 16) })
      answer(accept as Accept, reject as Accept, true)
    })
    session.on('shell', (accept) => this.#begin(accept, { kind: 'shell' }))
    session.on('exec', (accept, reject, { command }) => {
      const isFine = command.length <= mostCommandBytes && !hasNul(command)
      if (isFine) this.#begin(accept, { kind: 'exec', command })
      else reject?.()
    })
    session.on('subsystem', (accept, reject, { name }) => {
      if (name === 'sftp') this.#begin(accept, { kind: 'sftp' })
      else reject?.()
    })
  }

  #setVariable(name: string, value: string): boolean {
    const isFine =
      /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) &&
      !hasNul(value) &&
      (Object.hasOwn(this.#env, name) || Object.keys(this.#env).length < mostVariables) &&
      this.#envBytes + name.length + value.length <= variableBytes
    if (isFine) {
      this.#env[name] = value
      this.#envBytes += name.length + value.length
    }
    return isFine
  }

  #begin(accept: () => ServerChannel | undefined, run: CommandStart['run']): void {
    const channel = accept()
    if (channel === undefined || !this.#parts.peer.watch(channel)) return
    const out = new ChannelOut(this.#parts.peer, channel)
    this.#out = out
    this.#run(channel, {
      type: 'start',
      run,
      env: this.#env,
      ...(this.#terminal && { terminal: this.#terminal }),
    }).catch((error) => this.end(error instanceof Refused ? error.message : 'The connection to the sandbox was lost.'))
  }

  async #run(channel: ServerChannel, start: CommandStart): Promise<void> {
    const socket = await this.#parts.openSocket('/ssh/command')
    if (this.#isOver) return socket.terminate()
    this.#socket = socket
    socket.on('message', (data, isBinary) => this.#hear(channel, socket, data, isBinary))
    socket.once('close', () => this.end('The connection to the sandbox was lost.'))
    socket.send(JSON.stringify(start))
  }

  #say(message: ToCommand): void {
    if (this.#early !== undefined) {
      // Store at most 64 messages, because a client may send any number of signals before the start of the command.
      if (this.#early.length < 64) this.#early.push(message)
      return
    }
    if (this.#socket?.readyState === this.#socket?.OPEN) this.#socket?.send(JSON.stringify(message))
  }

  #hear(channel: ServerChannel, socket: WebSocket, data: RawData, isBinary: boolean): void {
    const bytes = data as Buffer
    if (isBinary) {
      const stream = bytes[0] === streamNumbers.stderr ? channel.stderr : channel
      socket.pause()
      void this.#out?.write(stream, bytes.subarray(1)).then(() => socket.resume())
      return
    }
    const told = readTold(bytes)
    if (told === undefined) this.end('The gate sent an answer that is not valid.')
    else if (told.type === 'started') this.#takeInput(channel)
    else if (told.type === 'credit') this.#addCredit(channel, told.bytes)
    else if (told.type === 'failed') this.end(told.message)
    else this.#finish(channel, told)
  }

  #takeInput(channel: ServerChannel): void {
    const early = this.#early ?? []
    this.#early = undefined
    for (const message of early) this.#say(message)
    channel.on('data', (data: Buffer) => this.#sendInput(channel, data))
    channel.once('end', () => {
      this.#hasEnded = true
      this.#tellEnd()
    })
  }

  /** Sends the end of the input to the command, after the last byte of the input. */
  #tellEnd(): void {
    if (this.#hasEnded && this.#pending === undefined) this.#say({ type: 'eof' })
  }

  #sendInput(channel: ServerChannel, data: Buffer): void {
    const piece = data.subarray(0, this.#credit)
    this.#credit -= piece.length
    if (piece.length > 0 && this.#socket?.readyState === this.#socket?.OPEN) this.#socket?.send(piece)
    this.#pending = piece.length < data.length ? data.subarray(piece.length) : undefined
    if (this.#credit === 0) channel.pause()
    this.#parts.peer.noteRead()
  }

  #addCredit(channel: ServerChannel, bytes: number): void {
    this.#credit += bytes
    const pending = this.#pending
    if (pending !== undefined) {
      this.#sendInput(channel, pending)
      this.#tellEnd()
    }
    if (this.#credit > 0 && this.#pending === undefined) channel.resume()
  }

  /** Sends the client the exit code or signal of its command, after all output. */
  #finish(channel: ServerChannel, { code, signal }: { code: number; signal?: string }): void {
    if (this.#isOver) return
    this.#isOver = true
    void this.#out?.after(() => {
      if (this.#out?.isGone) return
      if (signal === undefined) channel.exit(code)
      else channel.exit(signal, false, '')
      channel.end()
      channel.resume()
    })
  }

  /** Ends the SSH session with a sentence for the user. */
  end(sentence: string): void {
    const out = this.#out
    if (this.#isOver || out === undefined) return
    const { channel } = out
    const lineEnd = this.#terminal === undefined ? '\n' : '\r\n'
    void out.write(channel.stderr, Buffer.from(`alcove: ${sentence}${lineEnd}`))
    this.#finish(channel, { code: ownFailure })
    this.#socket?.terminate()
  }

  /** Call this when the client has disconnected. Closes the WebSocket; the gate then sends SIGHUP to the command. */
  leave(): void {
    this.#isOver = true
    this.#out?.leave()
    this.#socket?.terminate()
    this.#out?.channel.resume()
  }
}
