// Holds output that arrives faster than the terminal draws it. A page cannot make a WebSocket wait. So above a limit, the queue
// drops the waiting output, and the page shows how many bytes were dropped.

/** Maximum number of waiting bytes. If more bytes arrive, all waiting bytes are dropped: they would soon scroll out of view. */
const longestWaiting = 512 * 1024
/** How many bytes the terminal draws in one piece. Between two pieces the browser handles keys and clicks. */
const pieceBytes = 64 * 1024
/** The control character CAN of ECMA-48. It makes the terminal forget an escape sequence whose end was dropped. */
const cancel = 0x18
const lineFeed = 0x0a

export type QueueParts = {
  /** Draws one piece of output, and calls `done` afterwards. */
  draw: (piece: Uint8Array, done: () => void) => void
  /** Called with the number of bytes that this queue has dropped so far. */
  onDropped: (bytes: number) => void
}

const afterLine = (data: Uint8Array): Uint8Array => {
  const rest = data.subarray(data.indexOf(lineFeed) + 1)
  const piece = new Uint8Array(rest.length + 1)
  piece[0] = cancel
  piece.set(rest, 1)
  return piece
}

export class OutputQueue {
  readonly #parts: QueueParts
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  #droppedBytes = 0
  #isDrawing = false

  constructor(parts: QueueParts) {
    this.#parts = parts
  }

  get waitingBytes(): number {
    return this.#waitingBytes
  }

  add(data: Uint8Array): void {
    if (data.length === 0) return
    if (this.#waitingBytes + data.length > longestWaiting) {
      this.#droppedBytes += this.#waitingBytes
      this.#waiting = [afterLine(data.subarray(-longestWaiting))]
      this.#waitingBytes = this.#waiting[0]!.length
      this.#droppedBytes += Math.max(0, data.length - longestWaiting)
      this.#parts.onDropped(this.#droppedBytes)
    } else {
      this.#waiting.push(data)
      this.#waitingBytes += data.length
    }
    this.#drawNext()
  }

  /** Drops the waiting output. Called before the server sends its stored output again. */
  clear(): void {
    this.#waiting = []
    this.#waitingBytes = 0
  }

  #drawNext(): void {
    const first = this.#waiting[0]
    if (this.#isDrawing || first === undefined) return
    const piece = first.subarray(0, pieceBytes)
    if (piece.length === first.length) this.#waiting.shift()
    else this.#waiting[0] = first.subarray(piece.length)
    this.#waitingBytes -= piece.length
    this.#isDrawing = true
    this.#parts.draw(piece, () => {
      this.#isDrawing = false
      this.#drawNext()
    })
  }
}
