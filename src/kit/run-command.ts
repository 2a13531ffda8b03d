// Runs one program of the host to its end: no shell, bounded output, bounded time, and an error that says what it said.
import { spawn } from 'node:child_process'

export type CommandOptions = {
  /** Written to its standard input; absent: end of file at once. */
  input?: string
  /** After this it is killed. */
  timeoutMs?: number
  /** Lets everything else on the host go first. */
  background?: boolean
  env?: Record<string, string>
}

export class CommandFailed extends Error {
  readonly exitCode: number | null
  readonly stderr: string

  constructor(argv: readonly string[], ending: string, exitCode: number | null, stderr: string) {
    const lastLines = stderr.trim().split('\n').slice(-5).join('\n')
    super(`${argv.join(' ')}: ${ending}${lastLines === '' ? '' : `: ${lastLines}`}`)
    this.name = 'CommandFailed'
    this.exitCode = exitCode
    this.stderr = stderr
  }
}

const outputLimitBytes = 32 * 1024 * 1024
const systemPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Resolves with what it wrote on standard output; throws `CommandFailed` unless it exits with 0. */
export const runCommand = (argv: readonly string[], options: CommandOptions = {}): Promise<string> => {
  const { input, timeoutMs = 30_000, background = false, env = {} } = options
  const [program, ...args] = background ? ['nice', '-n', '19', ...argv] : argv
  if (program === undefined) throw new TypeError('a command needs a program')

  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env: { PATH: systemPath, LC_ALL: 'C.UTF-8', ...env } })
    const out: Buffer[] = []
    const err: Buffer[] = []
    let bytes = 0
    let ending: string | undefined

    const stop = (why: string) => {
      ending ??= why
      child.kill('SIGKILL')
    }
    const timer = setTimeout(() => stop(`took longer than ${timeoutMs} ms`), timeoutMs)
    const keep = (list: Buffer[]) => (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > outputLimitBytes) return stop('wrote too much')
      list.push(chunk)
    }
    child.stdout.on('data', keep(out))
    child.stderr.on('data', keep(err))
    // A program that ends before it has read all its input is judged by its exit code.
    child.stdin.on('error', () => {})
    child.stdin.end(input ?? '')

    child.once('error', (error) => {
      clearTimeout(timer)
      reject(new CommandFailed(argv, error.message, null, ''))
    })
    child.once('close', (exitCode, signal) => {
      clearTimeout(timer)
      if (exitCode === 0 && ending === undefined) return resolve(Buffer.concat(out).toString())
      const how = ending ?? (signal === null ? `exit code ${exitCode}` : `ended by ${signal}`)
      reject(new CommandFailed(argv, how, exitCode, Buffer.concat(err).toString()))
    })
  })
}
