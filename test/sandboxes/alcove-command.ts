// Runs the bundled program of the npm package `client` in a child process.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join, resolve } from 'node:path'

export type Ran = { code: number | null; out: string; err: string }

const root = resolve(import.meta.dirname, '../..')
export const clientDirectory = join(root, 'client')
export const program = join(clientDirectory, 'bin/alcove.js')
const patienceMs = 120_000

export type Started = {
  child: ChildProcessWithoutNullStreams
  /** Returns what the program has written so far to standard output and standard error. */
  said: () => Ran
  /** Waits until the program's standard output or standard error contains the text. */
  until: (text: string) => Promise<void>
  ended: Promise<Ran>
}

export const startProgram = (
  command: string,
  args: readonly string[],
  { env, cwd, input }: { env: NodeJS.ProcessEnv; cwd?: string; input?: string | Buffer },
): Started => {
  const child = spawn(command, args, { env, cwd, timeout: patienceMs, stdio: 'pipe' })
  const [out, err]: [Buffer[], Buffer[]] = [[], []]
  let onChange = () => {}
  const collect = (list: Buffer[]) => (data: Buffer) => {
    list.push(data)
    onChange()
  }
  child.stdout.on('data', collect(out))
  child.stderr.on('data', collect(err))
  child.once('close', () => onChange())
  child.stdin.on('error', () => {})
  if (input !== undefined) child.stdin.end(input)
  const said = () => ({
    code: child.exitCode,
    out: Buffer.concat(out).toString('latin1'),
    err: Buffer.concat(err).toString(),
  })
  const ended = once(child, 'close').then(([code]) => ({ ...said(), code: code as number | null }))
  const until = async (text: string) => {
    const isThere = () => said().out.includes(text) || said().err.includes(text)
    while (!isThere()) {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`it ended without ${JSON.stringify(text)}: ${JSON.stringify(said())}`)
      await new Promise<void>((resolve) => {
        onChange = resolve
      })
    }
  }
  return { child, said, until, ended }
}

/** The environment of a user who has set only the variables for the server's URL and the API key. */
export const userEnvironment = (home: string, server?: { url: string; key: string }): NodeJS.ProcessEnv => ({
  PATH: process.env['PATH'],
  HOME: home,
  ...(server === undefined ? {} : { ALCOVE_API_URL: server.url, ALCOVE_API_KEY: server.key }),
})
