// The text of a Dockerfile, cut into instructions (docs.docker.com/reference/dockerfile). What they mean is for `plan.ts`.
import { ImageFailed } from '../image-failed.ts'

export type Instruction = { line: number; name: string; rest: string }

const largestText = 256 * 1024
const mostInstructions = 1000

export const refuse = (line: number, why: string): never => {
  throw new ImageFailed('unsupported', `Line ${line} of the definition: ${why}.`)
}

/** Undefined for what is no list of texts, which is read as words, or by a shell. */
export const jsonListIn = (rest: string): string[] | undefined => {
  if (!rest.startsWith('[')) return undefined
  try {
    const parsed: unknown = JSON.parse(rest)
    return Array.isArray(parsed) && parsed.every((part) => typeof part === 'string') ? parsed : undefined
  } catch {
    return undefined
  }
}

/** The character that joins lines; a comment at the very top may change it. */
const escapeIn = (lines: readonly string[]): '\\' | '`' => {
  for (const line of lines) {
    const [, name, value] = /^\s*#\s*(\w+)\s*=\s*(\S+)\s*$/.exec(line) ?? []
    if (name === undefined) break
    if (name.toLowerCase() === 'escape' && value === '`') return '`'
  }
  return '\\'
}

/** One word such as `<<EOF`, which takes the lines after it along. */
const hereDocument = /(?:^|\s)\d*<<-?["']?[A-Za-z_]/

export const instructionsOf = (text: string): { instructions: Instruction[]; escapedBy: '\\' | '`' } => {
  if (text.length > largestText) refuse(1, 'the definition is longer than 256 KiB')
  if (text.includes('\0')) refuse(1, 'the definition is not text')
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/)
  const escapedBy = escapeIn(lines)
  const joins = escapedBy === '\\' ? /\\[ \t]*$/ : /`[ \t]*$/
  const instructions: Instruction[] = []
  let open: { line: number; text: string } | undefined

  const close = () => {
    if (open === undefined) return
    const { line, text: whole } = open
    open = undefined
    const [, name, rest = ''] = /^\s*([A-Za-z]+)(?:\s+(.*))?$/s.exec(whole) ?? []
    if (name === undefined) return refuse(line, `"${whole.trim().slice(0, 40)}" is no instruction`)
    if (/^(RUN|COPY|ADD)$/i.test(name) && hereDocument.test(rest)) refuse(line, 'here-documents are not supported')
    instructions.push({ line, name: name.toUpperCase(), rest: rest.trim() })
    if (instructions.length > mostInstructions) refuse(line, `there are more than ${mostInstructions} instructions`)
  }
  for (const [index, line] of lines.entries()) {
    // Also between the lines of one instruction.
    if (line.trim() === '' || /^\s*#/.test(line)) continue
    const goesOn = joins.test(line)
    const part = goesOn ? line.replace(joins, '') : line
    if (open === undefined) open = { line: index + 1, text: part }
    else open.text += part
    if (!goesOn) close()
  }
  close()
  return { instructions, escapedBy }
}
