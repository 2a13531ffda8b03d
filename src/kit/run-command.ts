// Runs one program of the host without a shell, with limits for output and time.
import { spawn } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { constants as osConstants } from 'node:os'
import { join } from 'node:path'
import { CommandServer, type Question } from './command-server.ts'

type CommandOptions = {
  /** Text for the program's standard input. Absent: standard input is empty. */
  input?: string
  /** Milliseconds after which the program is killed. */
  timeoutMs?: number
  /** True if the program runs with the lowest priority on the host. */
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
const systemEnvironment = { PATH: systemPath, LC_ALL: 'C.UTF-8' }

/** Returns the full path of the program that `runCommand` starts for this name. */
export const pathOfProgram = async (name: string): Promise<string> => {
  for (const directory of systemPath.split(':')) {
    const path = join(directory, name)
    const isThere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isThere) return path
  }
  throw new Error(`There is no ${name} on this machine.`)
}

let server: CommandServer | undefined

/**
 * From now on, the command server starts all commands. It is a small process that runs native/serve.c, with the command line
 * `argv`. Starting a program copies the process that starts it, and a small process is copied faster.
 */
export const haveCommandsStartedBy = (argv: readonly [string, ...string[]]): Disposable => {
  const mine = new CommandServer(argv, systemEnvironment)
  server = mine
  return {
    [Symbol.dispose]: () => {
      if (server === mine) server = undefined
      mine.close()
    },
  }
}

/**
 * Tells the command server (native/serve.c) to prepare for a command that moves a process between cgroups, so that it takes less
 * time.
 */
export const expectMove = (): void => server?.expectMove()

/** Maximum size of a message to the command server, in bytes. */
const questionLimitBytes = 1024 * 1024

/**
 * Lets the command server run a command, and returns the command's standard output. Returns undefined if no command server runs,
 * or if the input is too long for a message.
 */
export const runByServer = async (question: Question): Promise<string | undefined> => {
  const { argv, input = '', timeoutMs } = question
  if (server === undefined || input.length > questionLimitBytes) return undefined
  const began = performance.now()
  const { exitCode, signal, stdout, stderr } = await server.run(question).catch((error: Error) => {
    throw new CommandFailed(argv, error.message, null, '')
  })
  if (exitCode === 0) return stdout
  const how = signal === null ? `exit code ${exitCode}` : `ended by ${nameOfSignal(signal)}`
  const isLate = signal !== null && performance.now() - began >= timeoutMs
  throw new CommandFailed(argv, isLate ? `took longer than ${timeoutMs} ms` : how, exitCode, stderr)
}

const nameOfSignal = (signal: number) =>
  Object.entries(osConstants.signals).find(([, number]) => number === signal)?.[0] ?? signal

/** Runs a command and resolves with its standard output. Throws `CommandFailed` if the exit code is not 0. */
export const runCommand = async (argv: readonly string[], options: CommandOptions = {}): Promise<string> => {
  const { input, timeoutMs = 30_000, background = false, env } = options
  const words = background ? ['nice', '-n', '19', ...argv] : argv
  if (env === undefined) {
    const output = await runByServer({ argv: words, timeoutMs, ...(input === undefined ? {} : { input }) })
    if (output !== undefined) return output
  }
  return runOurselves(words, { ...options, timeoutMs })
}

const runOurselves = (argv: readonly string[], options: CommandOptions & { timeoutMs: number }): Promise<string> => {
  const { input, timeoutMs, env = {} } = options
  const [program, ...args] = argv
  if (program === undefined) throw new TypeError('a command needs a program')

  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env: { ...systemEnvironment, ...env } })
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
    // Writing fails if the program ends before it has read all of its input. Only its exit code tells whether it succeeded.
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
