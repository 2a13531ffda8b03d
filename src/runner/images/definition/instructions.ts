// Splits the text of a Dockerfile into instructions (docs.docker.com/reference/dockerfile). `stage.ts` interprets them.
import { ImageFailed } from '../image-failed.ts'
import { documentsAfter, type HereDocument, openingsIn } from './here-documents.ts'

export type Instruction = {
  line: number
  name: string
  /** The flags after the instruction's name, such as `--from=build`, as they are written. */
  flags: readonly string[]
  rest: string
  documents: readonly HereDocument[]
  /** For a trigger: its text and its image, for errors. */
  trigger?: string
}

/** Advice for a line that does not begin with a known instruction. */
export const noInstruction = 'write RUN before a command, or end the line above with \\ to continue that line here'

const largestText = 256 * 1024
const mostInstructions = 1000
/** Maximum number of flags of one instruction. Each flag is expanded with a copy of all variables, which takes time. */
const mostFlags = 30

/**
 * Where an error is in the definition: the line's number, and the name of its instruction if the line has an instruction.
 * `trigger`: the error is in this ONBUILD trigger of the base image, and `line` is the line of FROM.
 */
export type At = { line: number; name?: string; trigger?: string | undefined }
/** Where an error in an instruction is. */
export type AtInstruction = At & { name: string }

/** Throws an error that names the line and the reason `why`. `instead` says what the user should write. */
export const refuse = ({ line, name, trigger = name }: At, why: string, instead: string): never => {
  const of = trigger === undefined ? '' : ` (${trigger})`
  throw new ImageFailed('unsupported', `Line ${line} of the definition${of}: ${why}; ${instead}.`)
}

/** Parses a JSON list of strings. Undefined for any other text. */
export const jsonListIn = (rest: string): string[] | undefined => {
  if (!rest.startsWith('[')) return undefined
  try {
    const parsed: unknown = JSON.parse(rest)
    return Array.isArray(parsed) && parsed.every((part) => typeof part === 'string') ? parsed : undefined
  } catch {
    return undefined
  }
}

/**
 * Returns the character that continues an instruction on the next line. The directive `# escape=` at the top may set this
 * character.
 */
const escapeIn = (lines: readonly string[]): '\\' | '`' => {
  for (const line of lines) {
    const [, name, value] = /^\s*#\s*(\w+)\s*=\s*(\S+)\s*$/.exec(line) ?? []
    if (name === undefined) break
    if (name.toLowerCase() === 'escape' && value === '`') return '`'
  }
  return '\\'
}

const takesFlags = ['FROM', 'RUN', 'COPY', 'ADD']
const takesDocuments = ['RUN', 'COPY', 'ADD']

const flagShape = /^--[a-z](?:[^\s"']|"[^"]*"|'[^']*')*(?:\s+|$)/

const flagsIn = (at: AtInstruction, text: string): { flags: string[]; rest: string } => {
  const { name } = at
  const flags: string[] = []
  let rest = text
  if (!takesFlags.includes(name)) return { flags, rest }
  for (let found = flagShape.exec(rest); found; found = flagShape.exec(rest)) {
    flags.push(found[0].trim())
    if (flags.length > mostFlags) refuse(at, `it has more than ${mostFlags} flags`, 'write several lines')
    rest = rest.slice(found[0].length)
  }
  if (/^--[a-z]/.test(rest))
    refuse(at, 'a flag has a quote that is never closed', 'write the same quote after the value')
  return { flags, rest }
}

const openingsOf = (name: string, rest: string) => {
  if (name === 'ONBUILD') {
    const [, inner = '', more = ''] = /^([A-Za-z]+)\s+(.*)$/s.exec(rest) ?? []
    return takesDocuments.includes(inner.toUpperCase()) && jsonListIn(more) === undefined ? openingsIn(more) : []
  }
  return takesDocuments.includes(name) && jsonListIn(rest) === undefined ? openingsIn(rest) : []
}

export const instructionsOf = (text: string): { instructions: Instruction[]; escapedBy: '\\' | '`' } => {
  if (text.length > largestText)
    refuse({ line: 1 }, 'the definition is longer than 256 KiB', 'put scripts into files and COPY them')
  if (text.includes('\0')) refuse({ line: 1 }, 'the definition is not text', 'send a Dockerfile as UTF-8')
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/)
  const escapedBy = escapeIn(lines)
  const joins = escapedBy === '\\' ? /\\[ \t]*$/ : /`[ \t]*$/
  const instructions: Instruction[] = []
  let open: { line: number; text: string } | undefined

  /**
   * Ends the instruction that is being read. `next`: number of the line after the instruction. Returns that number, or the number
   * of the line after its here-documents.
   */
  const close = (next: number): number => {
    if (open === undefined) return next
    const { line, text: whole } = open
    open = undefined
    const [, word, behind = ''] = /^\s*([A-Za-z]+)(?:\s+(.*))?$/s.exec(whole) ?? []
    if (word === undefined) return refuse({ line }, `"${whole.trim().slice(0, 40)}" is no instruction`, noInstruction)
    const name = word.toUpperCase()
    const { flags, rest } = flagsIn({ line, name }, behind.trim())
    const found = documentsAfter(lines, next, openingsOf(name, rest))
    if ('unclosed' in found)
      return refuse(
        { line, name },
        `the here-document ${found.unclosed.slice(0, 40)} has no end`,
        `write a line below that contains only "${found.unclosed.slice(0, 40)}"`,
      )
    instructions.push({ line, name, flags, rest: rest.trim(), documents: found.documents })
    if (instructions.length > mostInstructions)
      refuse({ line, name }, `there are more than ${mostInstructions} instructions`, 'join RUN commands with &&')
    return found.next
  }
  for (let index = 0; index < lines.length; ) {
    const line = lines[index] as string
    index += 1
    // Comments and empty lines are skipped, even between the lines of one instruction.
    if (line.trim() === '' || /^\s*#/.test(line)) continue
    const goesOn = joins.test(line)
    const part = goesOn ? line.replace(joins, '') : line
    if (open === undefined) open = { line: index, text: part }
    else open.text += part
    if (!goesOn) index = close(index)
  }
  close(lines.length)
  return { instructions, escapedBy }
}
