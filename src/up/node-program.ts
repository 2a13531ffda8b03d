// Starts a program of Alcove as a child process of `up`. The child tells `up` on an IPC channel when it is ready to serve.
import { spawn } from 'node:child_process'
import type { Progress } from '#src/wire/runner-link.ts'
import type { BoundedLog } from './bounded-log.ts'
import { ProgramLines } from './program-lines.ts'
import type { Running } from './supervised.ts'

type Parts = {
  name: string
  command: readonly string[]
  env: Record<string, string>
  log: BoundedLog
  onProgress?: (progress: Progress) => void
  onRefused?: (isRefused: boolean) => void
}

type Message = { type?: unknown; step?: unknown; percent?: unknown; isRefused?: unknown; why?: unknown } | null

export const startNodeProgram = async ({ name, command, env, log, onProgress, onRefused }: Parts): Promise<Running> => {
  const [file = '', ...args] = command
  const child = spawn(file, args, {
    cwd: '/',
    env,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    // In a process session of its own, the program gets no Ctrl-C from a terminal, so `up` can stop the programs in the right
    // order.
    detached: true,
  })
  for (const stream of [child.stdout, child.stderr]) new ProgramLines(name, log).read(stream)
  /** Why the program ended, if it has reported a reason on the IPC channel. */
  let why: string | undefined
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('exit', (code, signal) => resolve(why ?? (signal ? `killed by ${signal}` : `exit code ${code}`)))
  })
  const ready = new Promise<void>((resolve) => {
    child.on('message', (message: Message) => {
      if (message?.type === 'ready') resolve()
      if (message?.type === 'progress') {
        onProgress?.({ step: String(message.step), percent: Number(message.percent) })
      }
      if (message?.type === 'barred') why = String(message.why)
      if (message?.type === 'refused') onRefused?.(message.isRefused === true)
    })
  })
  if (child.pid === undefined) throw new Error(`${file} could not be started: ${await ended}`)
  return { pid: child.pid, ready, ended, stop: () => void child.kill('SIGTERM') }
}
