// For tests: runs a seccomp filter program as the kernel would run it.
import assert from 'node:assert/strict'

/**
 * Returns the error number with which the filter `program` answers a system call, or 0 if it allows the call. Undefined if the
 * program leaves the decision to the next filter.
 */
export const answerOf = (
  program: Buffer,
  call: number,
  given: readonly bigint[],
  architecture = 0,
): number | undefined => {
  const data = Buffer.alloc(64)
  data.writeUInt32LE(call, 0)
  data.writeUInt32LE(architecture, 4)
  for (const [index, value] of given.entries()) data.writeBigUInt64LE(value, 16 + 8 * index)
  let accumulator = 0
  for (let at = 0; at < program.length; at += 8) {
    const value = program.readUInt32LE(at + 4)
    const code = program.readUInt16LE(at)
    const jump = (holds: boolean) => {
      at += 8 * program.readUInt8(at + (holds ? 2 : 3))
    }
    if (code === 0x20) accumulator = data.readUInt32LE(value)
    else if (code === 0x54) accumulator = (accumulator & value) >>> 0
    else if (code === 0x06) return value & 0xffff
    else if (code === 0x05) at += 8 * value
    else if (code === 0x15) jump(accumulator === value)
    else if (code === 0x25) jump(accumulator > value)
    else if (code === 0x35) jump(accumulator >= value)
    else assert.fail(`an instruction that is unknown here: ${code}`)
  }
  return undefined
}
