// Turns what a program prints into lines of its log. Lines of Alcove's own JSON pass unchanged. Other text becomes the message of a
// structured line.
import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { createLog, type Logger } from '#src/kit/log.ts'
import type { BoundedLog } from './bounded-log.ts'

/** Maximum length of a structured line. A longer line is cut. The lines that our programs write are far shorter. */
const mostLine = 256 * 1024
/** Maximum length of a log message from unstructured output. */
const mostText = 8192

const isStructured = (line: string): boolean => {
  if (!line.startsWith('{')) return false
  try {
    return 'level' in JSON.parse(line)
  } catch {
    return false
  }
}

/** Makes log lines from one output stream of a program: standard output or standard error. */
export class ProgramLines {
  readonly #log: Pick<BoundedLog, 'write'>
  readonly #wrap: Logger
  readonly #decoder = new StringDecoder('utf8')
  #rest = ''
  /** True after the beginning of a too long line was written, until the end of the line has arrived. */
  #isCut = false

  constructor(program: string, log: Pick<BoundedLog, 'write'>) {
    this.#log = log
    this.#wrap = createLog(program, 'info', log)
  }

  read(stream: Readable | null): void {
    stream?.on('data', (chunk: Buffer) => this.write(chunk))
    stream?.once('close', () => this.end())
  }

  /** Adds a piece of output. Unstructured lines that come in one piece, such as a stack trace, become one log line. */
  write(chunk: Buffer): void {
    const lines = (this.#rest + this.#decoder.write(chunk)).split('\n')
    this.#rest = lines.pop() ?? ''
    if (this.#isCut && lines.length > 0) {
      lines.shift()
      this.#isCut = false
    }
    this.#tell(lines)
    if (this.#isCut) this.#rest = ''
    if (this.#rest.length <= mostLine) return
    this.#tell([this.#rest])
    this.#rest = ''
    this.#isCut = true
  }

  end(): void {
    if (!this.#isCut) this.#tell([this.#rest + this.#decoder.end()])
    this.#rest = ''
  }

  #tell(lines: readonly string[]) {
    let plain: string[] = []
    const wrapPlain = () => {
      const text = plain.join('\n').trim().slice(0, mostText)
      plain = []
      if (text !== '') this.#wrap.warn({ from: 'output' }, text)
    }
    for (const line of lines) {
      if (!isStructured(line)) {
        plain.push(line)
        continue
      }
      wrapPlain()
      this.#log.write(`${line}\n`)
    }
    wrapPlain()
  }
}
