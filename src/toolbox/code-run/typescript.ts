// TypeScript → CommonJS, or a module where it awaits at its top, on the runner, because images need not have a compiler. The
// source is hostile: it is read by esbuild's own program in a fresh process without privileges, which sees no file and no
// network, and has bounds on memory, processor time, waiting time and output. Nothing of the code is executed here.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Bound } from '#src/kit/bound.ts'
import { confined, users } from '#src/kit/confined.ts'
import { Problem } from '#src/problems.ts'
import type { Deadline } from '../exec/deadline.ts'
import { Turns } from './turns.ts'

const atOnce = 2
/** Of an organization, of all, and what each may also where the others have taken all places. */
const waitingAtMost = { each: 16, all: 64, sure: 2 }
const turns = new Turns(atOnce, new Bound(waitingAtMost))
const sourceBytes = 1024 * 1024
const outputBytes = 64 * 1024 * 1024
const errorBytes = 64 * 1024
const wallMs = 10_000

const limits = { data: 512 * 1024 * 1024, cpu: 5, files: 16, filesize: 0 }
const options =
  '--loader=ts --platform=node --target=node18 --sourcemap=inline --sourcefile=code.ts --color=false --log-level=error --log-limit=10'.split(
    ' ',
  )

/** `files`: like cjs, and what the code imports when it runs is required, as Node cannot import TypeScript. */
type Format = 'cjs' | 'esm' | 'files'
type Transpiled = { javascript: string; isModule: boolean } | { complaint: string }

/** Confined where we are root; otherwise there is nothing to be given away. */
const commandOfCompiler = (format: Format): string[] => {
  const program = fileURLToPath(import.meta.resolve(`@esbuild/linux-${process.arch}/bin/esbuild`))
  const formatOptions =
    format === 'files' ? ['--format=cjs', '--supported:dynamic-import=false'] : [`--format=${format}`]
  const command = [program, ...formatOptions, ...options]
  if (process.getuid?.() !== 0) return command
  return confined({ command, uid: users.compiler, shown: [{ from: program }], sockets: 'none', limits })
}

type Ended = { code: number | null; javascript: string; errors: string }

const compile = (source: string, format: Format, { signal }: Deadline): Promise<Ended> =>
  new Promise((resolve, reject) => {
    const [program = '', ...args] = commandOfCompiler(format)
    const child = spawn(program, args, { stdio: 'pipe', cwd: '/', env: {} })
    const kill = () => child.kill('SIGKILL')
    const timer = setTimeout(kill, wallMs)
    signal.addEventListener('abort', kill, { once: true })
    const written: Buffer[] = []
    const errors: Buffer[] = []
    let writtenBytes = 0
    let errorsBytes = 0
    child.stdout.on('data', (data: Buffer) => {
      writtenBytes += data.length
      if (writtenBytes > outputBytes) kill()
      else written.push(data)
    })
    child.stderr.on('data', (data: Buffer) => {
      if (errorsBytes < errorBytes) errors.push(data)
      errorsBytes += data.length
    })
    // It may end before it has read everything; its exit says why.
    child.stdin.on('error', () => undefined)
    child.stdin.end(source)
    child.on('error', reject)
    child.on('close', (code) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', kill)
      if (signal.aborted) reject(signal.reason)
      else resolve({ code, javascript: Buffer.concat(written).toString(), errors: Buffer.concat(errors).toString() })
    })
  })

/** What esbuild exits with when it has read the code and found it wrong. */
const foundWrong = 1
const needsModule = /Top-level await is currently not supported with the "cjs" output format/
const tooMuch = 'The TypeScript compiler gave up: the code is too large or too deeply nested.\n'

/** A complaint is about the caller's code and belongs into the result. Throws the deadline's reason. */
export const transpile = async (
  owner: string,
  source: string,
  deadline: Deadline,
  importsFiles = false,
): Promise<Transpiled> => {
  if (Buffer.byteLength(source) > sourceBytes) throw new Problem('too_large', 'TypeScript code has at most 1 MiB.')
  using _ = await turns.take(owner, deadline.signal)
  deadline.signal.throwIfAborted()
  const script = await compile(source, importsFiles ? 'files' : 'cjs', deadline)
  const isModule = script.code === foundWrong && needsModule.test(script.errors)
  const { code, javascript, errors } = isModule ? await compile(source, 'esm', deadline) : script
  if (code === 0) return { javascript, isModule }
  return { complaint: code === foundWrong && errors !== '' ? errors : tooMuch }
}
