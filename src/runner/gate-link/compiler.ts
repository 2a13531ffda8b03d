// Compiles callers' code by esbuild. The code is hostile, so each compilation is a new process with limits and without
// privileges, files and network.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { confined, users } from '#src/kit/confined.ts'
import type { Compiled } from '#src/wire/gate-link.ts'

const outputBytes = 64 * 1024 * 1024
const errorBytes = 64 * 1024
const wallMs = 10_000

const limits = { data: 512 * 1024 * 1024, cpu: 5, files: 16, filesize: 0 }
const options =
  '--loader=ts --platform=node --target=node18 --sourcemap=inline --sourcefile=code.ts --color=false --log-level=error --log-limit=10'.split(
    ' ',
  )

/**
 * Format of the compiled JavaScript. `files` is like `cjs`, but dynamic imports become calls of `require`: only `require` can load
 * TypeScript files of the sandbox.
 */
export type Format = 'cjs' | 'esm' | 'files'

/** Returns the command line of the compiler. If this process is root, the compiler runs as an unprivileged user. */
const commandOfCompiler = (format: Format): string[] => {
  const program = fileURLToPath(import.meta.resolve(`@esbuild/linux-${process.arch}/bin/esbuild`))
  const formatOptions =
    format === 'files' ? ['--format=cjs', '--supported:dynamic-import=false'] : [`--format=${format}`]
  const command = [program, ...formatOptions, ...options]
  if (process.getuid?.() !== 0) return command
  return confined({ command, uid: users.compiler, shown: [{ from: program }], sockets: 'none', limits })
}

/** Compiles `source` in a new process. If `signal` is aborted, throws the reason of the abort. */
export const compile = (source: string, format: Format, { signal }: { signal: AbortSignal }): Promise<Compiled> =>
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
    // The compiler may end before it has read all of its input. Its exit code shows why.
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
