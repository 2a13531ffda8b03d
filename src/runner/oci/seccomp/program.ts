// Makes filter programs, which the kernel runs at every system call. Jumps are relative and only go forward, so programs can be
// joined.

type Condition = { argument: number; bits?: number } & ({ is: number } | { isNot: number } | { above: number })
/** System calls that fail with `errno` if all conditions in `when` are true. */
export type Forbidden = { calls: readonly string[]; when: readonly Condition[]; errno: number }

/**
 * An instruction: the operation, how many instructions to skip if the instruction's test is true (`yes`) or false (`no`), and a
 * value.
 */
export type Instruction = readonly [code: number, yes: number, no: number, value: number]

const [load, skip, jumpIfEqual, jumpIfAbove, jumpIfAtLeast, and, answer] = [0x20, 0x05, 0x15, 0x25, 0x35, 0x54, 0x06]

const allowed = 0x7fff0000
const answerErrno = 0x00050000

/** Positions in `struct seccomp_data`: the number of the call, the architecture, and the lower half of each argument. */
const [callOffset, architectureOffset] = [0, 4]
const argumentOffset = (index: number) => 16 + 8 * index

/**
 * Makes an instruction that continues with the next instruction if the condition is true, and otherwise skips `past`
 * instructions.
 */
const jumpFor = (condition: Condition, past: number): Instruction => {
  if ('is' in condition) return [jumpIfEqual, 0, past, condition.is]
  if ('isNot' in condition) return [jumpIfEqual, past, 0, condition.isNot]
  return [jumpIfAbove, 0, past, condition.above]
}

const instructionsFor = ({ when, errno }: Forbidden): Instruction[] => {
  let program: Instruction[] = [[answer, 0, 0, answerErrno | errno]]
  for (const condition of [...when].reverse()) {
    const past = program.length
    const masked: Instruction[] = condition.bits === undefined ? [] : [[and, 0, 0, condition.bits]]
    program = [[load, 0, 0, argumentOffset(condition.argument)], ...masked, jumpFor(condition, past), ...program]
  }
  return program
}

/** Makes a program that refuses these calls. For any other call, the kernel continues with the instructions after the program. */
export const forbid = (
  forbidden: readonly Forbidden[],
  numberOf: (call: string) => number | undefined,
): Instruction[] => {
  const calls = [...new Set(forbidden.flatMap((each) => each.calls))]
  return calls.flatMap((call): Instruction[] => {
    const number = numberOf(call)
    if (number === undefined) return []
    const block = forbidden.filter((each) => each.calls.includes(call)).flatMap(instructionsFor)
    return [[load, 0, 0, callOffset], [jumpIfEqual, 0, block.length, number], ...block]
  })
}

/** System calls from number `from` up to the next range. These calls fail with `errno`; 0 allows them. */
export type Range = { from: number; errno: number }

/** Makes a program that allows or refuses each call by its number. `ranges` must be sorted, and must begin at 0. */
export const answerByNumber = (ranges: readonly Range[]): Instruction[] => {
  const search = (among: readonly Range[]): Instruction[] => {
    const [only] = among
    if (only === undefined) throw new Error('A search needs something to find.')
    if (among.length === 1) return [[answer, 0, 0, only.errno === 0 ? allowed : answerErrno | only.errno]]
    const middle = among.length >> 1
    const [below, above] = [search(among.slice(0, middle)), search(among.slice(middle))]
    return [[jumpIfAtLeast, below.length, 0, (among[middle] as Range).from], ...below, ...above]
  }
  return [[load, 0, 0, callOffset], ...search(ranges)]
}

/** Makes a program that runs `program` for calls of one architecture. Calls of other architectures skip this `program`. */
export const onlyFor = (architecture: number, program: readonly Instruction[]): Instruction[] => [
  [load, 0, 0, architectureOffset],
  [jumpIfEqual, 1, 0, architecture],
  [skip, 0, 0, program.length],
  ...program,
]

export const assemble = (program: readonly Instruction[]): Buffer => {
  const bytes = Buffer.alloc(program.length * 8)
  for (const [n, [code, yes, no, value]] of program.entries()) {
    bytes.writeUInt16LE(code, n * 8)
    bytes.writeUInt8(yes, n * 8 + 2)
    bytes.writeUInt8(no, n * 8 + 3)
    bytes.writeUInt32LE(value, n * 8 + 4)
  }
  return bytes
}
