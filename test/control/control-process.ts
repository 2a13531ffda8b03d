// Starts control as a separate process on the database of a test, for tests that kill control or run several control processes.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { keys } from './people.ts'
import { testEncryptionKey } from './test-settings.ts'

const program = join(import.meta.dirname, '../../bin/control.ts')

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

export type ControlProcess = AsyncDisposable & {
  /** Base URL of the started control: `http://127.0.0.1:port/api`. */
  base: string
  pid: number
  /** Kills the process with SIGKILL. */
  kill: () => Promise<void>
  /** Asks the control process to stop, and waits until it has ended. */
  stop: () => Promise<void>
}

const ended = async (child: ChildProcess, signal: 'SIGKILL' | 'SIGTERM') => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill(signal)
  await exit
}

export const startControlProcess = async (
  databaseUrl: string,
  env: Record<string, string> = {},
): Promise<ControlProcess> => {
  const address = `127.0.0.1:${await freePort()}`
  const child = fork(program, {
    env: {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      ALCOVE_DATABASE_URL: databaseUrl,
      ALCOVE_LISTEN: address,
      ALCOVE_PUBLIC_URL: `http://${address}`,
      ALCOVE_PROXY_URL: 'http://127.0.0.1:1',
      ALCOVE_PROXY_KEY: keys.proxy,
      ALCOVE_RUNNER_KEY: keys.runner,
      ALCOVE_MOST_WARM: '0',
      ALCOVE_OVERCOMMIT: '64,8,8',
      ALCOVE_ENCRYPTION_KEY: testEncryptionKey,
      ALCOVE_LOG_LEVEL: 'warn',
      ...env,
    },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const ready = await Promise.race([once(child, 'message'), once(child, 'exit')])
  if (child.exitCode !== null) throw new Error(`control ended with ${ready[0]}`)
  return {
    base: `http://${address}/api`,
    pid: child.pid!,
    kill: () => ended(child, 'SIGKILL'),
    stop: () => ended(child, 'SIGTERM'),
    [Symbol.asyncDispose]: () => ended(child, 'SIGKILL'),
  }
}
