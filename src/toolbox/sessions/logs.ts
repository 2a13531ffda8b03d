// Logs of a command: as texts of limited length, or as frames of a socket. Frames are sent only as fast as the client reads.
import type { WebSocket } from 'ws'
import { closeWith, keepAlive, sendThrough, sendWhole } from '#src/http/socket.ts'
import { brokenCharacter } from '#src/kit/json-size.ts'
import { giveBack } from '#src/kit/pour.ts'
import type { OutOfMemory } from '#src/toolbox/running/out-of-memory.ts'
import { BoundedOutput } from '#src/toolbox/running/output.ts'
import type { CommandEvent, Piece, TakePiece } from '../agent/agent.ts'
import { keptOutputBytes } from '../agent/kept-output.ts'
import { asTold } from './refusals.ts'
import type { Logs } from './schemas.ts'

/** The markers in a log. The bytes after a marker, up to the next marker, are output of the marker's stream. */
export const markers = { stdout: Buffer.of(1, 1, 1), stderr: Buffer.of(2, 2, 2) } as const

type OutputEvent = Exclude<CommandEvent, { type: 'exit' }>

const lostNotice = (lostBytes: number): Buffer =>
  Buffer.from(`\n[output truncated: ${lostBytes} bytes of both streams were left out here]\n`)

/** Maximum size of a log in bytes: the stored output, plus 4096 for lines about lost output. */
const textBytes = keptOutputBytes + 4096

/** Collects the output events of a command, in order. */
class CollectedLogs implements Disposable {
  readonly #output: BoundedOutput
  readonly #streams: { stdout: BoundedOutput; stderr: BoundedOutput }
  readonly #isMarked: boolean
  #lastStream: 'stdout' | 'stderr' | undefined
  #lostBytes = 0
  #isAfterGap = false

  constructor(owner: string, isMarked: boolean) {
    this.#isMarked = isMarked
    const text = () => new BoundedOutput(owner, textBytes)
    this.#output = text()
    this.#streams = { stdout: text(), stderr: text() }
  }

  add(event: OutputEvent): void {
    if (event.type === 'output') {
      this.#mark(event.stream)
      const data = this.#isAfterGap ? event.data.subarray(brokenCharacter(event.data)) : event.data
      this.#isAfterGap = false
      this.#output.add(data)
      this.#streams[event.stream].add(data)
      return
    }
    // It is not known to which stream the lost output belonged, so the text of each stream reports the loss.
    this.#lostBytes += event.lostBytes
    this.#isAfterGap = true
    const texts = [this.#output, this.#streams.stdout, this.#streams.stderr]
    for (const text of texts) text.dropCutCharacter()
    this.#mark('stderr')
    for (const text of texts) text.add(lostNotice(event.lostBytes))
  }

  /** Adds a marker only where the stream changes. A marker between two pieces of one stream could cut a character in two. */
  #mark(stream: 'stdout' | 'stderr'): void {
    if (!this.#isMarked || this.#lastStream === stream) return
    this.#lastStream = stream
    this.#output.add(markers[stream])
  }

  view(): Logs {
    const { stdout, stderr } = this.#streams
    const isTruncated = this.#lostBytes > 0 || this.#output.droppedBytes + stdout.droppedBytes + stderr.droppedBytes > 0
    return {
      output: this.#output.text(),
      stdout: stdout.text(),
      stderr: stderr.text(),
      ...(isTruncated ? { truncated: true as const } : {}),
    }
  }

  [Symbol.dispose](): void {
    for (const text of [this.#output, this.#streams.stdout, this.#streams.stderr]) text[Symbol.dispose]()
  }
}

/**
 * Collects a log. `owner`: the organization whose share of memory the log uses (running/output.ts). `isMarked` adds a marker where
 * output of stdout or stderr begins, for old SDKs. The returned `exit` is the command's end, if it has ended.
 */
export const collectLogs = async <Exit extends { type: 'exit' }>(
  events: AsyncIterable<OutputEvent | Exit>,
  owner: string,
  isMarked = false,
) => {
  using logs = new CollectedLogs(owner, isMarked)
  let exit: Exit | undefined
  for await (const event of events) {
    if (event.type === 'exit') exit = event
    else {
      logs.add(event)
      if (event.type === 'output') giveBack(event.data)
    }
  }
  return { logs: logs.view(), exit }
}

/**
 * Adds to a failed command's log that the sandbox ran out of memory. A successful command's log stays unchanged, because a program
 * may parse it.
 */
export const withShortage = (
  logs: Logs,
  shortage: OutOfMemory | undefined,
  { exitCode, isMarked }: { exitCode: number; isMarked: boolean },
): Logs => {
  if (shortage === undefined) return logs
  const { line, oom } = shortage
  return { ...(exitCode === 0 ? logs : withLine(logs, line, isMarked)), oom }
}

/** Adds a line that Alcove itself writes, such as the reason of a failure, to the end of a log. */
export const withLine = (logs: Logs, line: string, isMarked: boolean): Logs => {
  const marked = isMarked ? `${markers.stderr}${line}` : line
  return { ...logs, output: logs.output + marked, stderr: logs.stderr + line }
}

/**
 * Maximum size of a message in bytes. The SDK passes all bytes as arguments of one function call, and crashes if there are too
 * many.
 */
const frameBytes = 32 * 1024

/**
 * Sends a piece of output as messages, each after the marker of its stream. Returns true if everything was sent immediately;
 * otherwise calls `done` later. To avoid a copy, the marker overwrites the bytes before the output; these are unused or already
 * sent.
 */
const sendPiece = (socket: WebSocket, piece: Piece, done: () => void): boolean => {
  if (piece.type === 'truncated') {
    return sendThrough(socket, Buffer.concat([markers.stderr, lostNotice(piece.lostBytes)]), done)
  }
  const { stream, data } = piece
  const marker = markers[stream]
  let at = 0
  const sendRest = (): boolean => {
    while (at < data.length) {
      const size = Math.min(data.length - at, frameBytes)
      const frame = Buffer.from(data.buffer, data.byteOffset + at - marker.length, marker.length + size)
      marker.copy(frame)
      at += size
      if (!sendThrough(socket, frame, goOn)) return false
    }
    return true
  }
  const goOn = () => {
    if (sendRest()) done()
  }
  return sendRest()
}

/**
 * Sends all output, then the line (why the command failed) that `lastLine` returns, and closes with 1000. A slow reader costs the
 * memory of one piece: the next piece is read only when the kernel has taken the last one. Output that the agent could not store is
 * reported as lost.
 */
export const sendLogs = async (
  socket: WebSocket,
  pour: (take: TakePiece, signal: AbortSignal) => Promise<void>,
  lastLine: () => Promise<string | undefined> = async () => undefined,
): Promise<void> => {
  const gone = new AbortController()
  socket.once('close', () => gone.abort())
  socket.on('error', () => gone.abort())
  keepAlive(socket)
  try {
    await pour((piece, done) => sendPiece(socket, piece, done), gone.signal)
    const line = gone.signal.aborted ? undefined : await lastLine()
    if (line !== undefined) await sendWhole(socket, Buffer.concat([markers.stderr, Buffer.from(line)]))
    closeWith(socket, 1000, '')
  } catch (error) {
    closeWith(socket, 1011, asTold(error).message)
  }
}
