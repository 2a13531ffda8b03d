// Streams whose memory is given back at once. Node reads every 64 KiB into memory of its own and leaves it to the garbage
// collector, which comes every 64 MiB: between its visits that is what a program grows by, and the visits cost more than the
// copying. What is freed as soon as it has been written is taken again for the next read.
import { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { Inflow, writeThrough } from './inflow.ts'

/** Smaller ones are not worth it, and mostly share their memory with others. */
const leastBytes = 4096

/** Frees what nobody looks at any more, if the memory is its own; it is empty afterwards. */
export const giveBack = ({ buffer, byteLength }: Uint8Array): void => {
  if (byteLength >= leastBytes && byteLength === buffer.byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0)
}

/** A socket has done with bytes when it says so; other streams may keep them. */
const pourThrough = (from: Inflow, to: Socket): (() => void) => {
  const goOn = () => void from.resume()
  const onEnd = () => void to.end()
  const stop = () => {
    from.off('end', onEnd).release()
    to.off('close', stop)
  }
  to.on('close', stop)
  from.on('end', onEnd).takeOver((bytes) => writeThrough(to, bytes, goOn))
  return stop
}

/**
 * Like `pipe`, for bytes that nobody else looks at; `end` is how it ends. Answers what stops it. The first stop pauses `from`;
 * later ones do nothing, as somebody else may read it by then.
 */
export const pour = (from: Readable, to: Writable, end = (): void => void to.end()): (() => void) => {
  if (from instanceof Inflow && to instanceof Socket) return pourThrough(from, to)
  // Many small pieces may come in one turn, as many as fit into what was read: together they are one write.
  let small: Uint8Array[] = []
  const write = (bytes: Uint8Array) => {
    if (!to.write(bytes, () => giveBack(bytes))) from.pause()
  }
  const writeSmall = () => {
    const [first, ...more] = small
    small = []
    if (first !== undefined) write(more.length === 0 ? first : Buffer.concat([first, ...more]))
  }
  const onData = (bytes: Uint8Array) => {
    if (bytes.length >= leastBytes) {
      writeSmall()
      return write(bytes)
    }
    if (small.push(bytes) === 1) process.nextTick(writeSmall)
  }
  const onEnd = () => {
    writeSmall()
    end()
  }
  const onDrain = () => void from.resume()
  let isStopped = false
  const stop = () => {
    if (isStopped) return
    isStopped = true
    small = []
    from.off('data', onData).off('end', onEnd).pause()
    to.off('drain', onDrain).off('close', stop)
  }
  to.on('drain', onDrain).on('close', stop)
  from.on('data', onData).on('end', onEnd)
  return stop
}
