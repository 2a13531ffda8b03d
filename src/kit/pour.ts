// Pipes that free a buffer, or use it again, as soon as its bytes are written. Node would otherwise collect the buffers as
// garbage, which takes more time than copying the bytes.
import { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { Inflow, writeThrough } from './inflow.ts'

/** Minimum size of a buffer that is freed immediately. A smaller buffer usually shares its memory with other buffers. */
const leastBytes = 4096

/** Frees the memory of bytes that nobody uses any more, unless other buffers share it. The array is then empty. */
export const giveBack = ({ buffer, byteLength }: Uint8Array): void => {
  if (byteLength >= leastBytes && byteLength === buffer.byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0)
}

/**
 * Pipes to a socket. After each write, `from` reads the next bytes into the same memory. `to` must be a socket, because other
 * streams may still use the old bytes.
 */
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
 * Pipes bytes as the method `pipe` does. No other code may use the bytes, because their memory is freed. Returns a function
 * that stops the pipe and pauses `from`.
 */
export const pour = (from: Readable, to: Writable, end = (): void => void to.end()): (() => void) => {
  if (from instanceof Inflow && to instanceof Socket) return pourThrough(from, to)
  // Small pieces that come in one turn of the event loop are written together, up to the size of one read.
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
    // Stop only once, because other code may read `from` afterwards.
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
