// The command `alcove shell`: a terminal in a sandbox. A shell outlives its connection, and `--attach` connects to it again.
import { randomBytes } from 'node:crypto'
import type { WebSocket } from 'ws'
import { callServer } from '../call.ts'
import { cleanLine } from '../clean.ts'
import type { Work } from '../commands.ts'
import { exitCodes, Failure } from '../failure.ts'
import { note } from '../print/print.ts'
import { getSandbox, type Sandbox, toolboxOf } from '../sandboxes/sandbox.ts'
import { keepAlive, openSocket } from './open-socket.ts'
import { lastingHeaders } from './preview-token.ts'

/** Maximum number of rows, and of columns, that the server accepts for a terminal. */
const mostSide = 1000

/**
 * Switches off what programs may have switched on in the terminal: the alternate screen, a hidden cursor, mouse reports,
 * bracketed paste and colors.
 */
const restoring = '\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[0m\r\n'

type Terminal = { work: Work; sandbox: Sandbox; id: string; headers: Record<string, string> }

const side = (size: number): number => Math.min(Math.max(Math.trunc(size) || 1, 1), mostSide)
const size = () => ({ cols: side(process.stdout.columns || 80), rows: side(process.stdout.rows || 24) })

const ptyUrl = ({ sandbox }: Pick<Terminal, 'sandbox'>, rest = ''): string => `${toolboxOf(sandbox)}/process/pty${rest}`

const ask = async ({ work, headers }: Terminal, method: string, url: string, body?: object): Promise<unknown> =>
  await callServer(url, {
    method,
    headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(method === 'DELETE' ? { patience: 3000 } : { signal: work.api.signal }),
  })

/**
 * Sends each new size of the user's terminal to the sandbox, one call at a time. Skips sizes during a call, except the last one.
 */
const followSize = (terminal: Terminal): Disposable => {
  let told = JSON.stringify(size())
  let isTelling = false
  const tell = async () => {
    if (isTelling) return
    isTelling = true
    while (told !== JSON.stringify(size())) {
      told = JSON.stringify(size())
      const url = ptyUrl(terminal, `/${encodeURIComponent(terminal.id)}/resize`)
      await ask(terminal, 'POST', url, size()).catch(() => {})
    }
    isTelling = false
  }
  process.stdout.on('resize', tell)
  return { [Symbol.dispose]: () => void process.stdout.off('resize', tell) }
}

/** Sends typed text to the sandbox. While the connection is slow, no more text is read from the terminal. */
const passInput = (socket: WebSocket): Disposable => {
  const onData = (data: Buffer) => {
    process.stdin.pause()
    socket.send(data, () => process.stdin.resume())
  }
  process.stdin.setRawMode(true)
  process.stdin.on('data', onData)
  process.stdin.resume()
  return {
    [Symbol.dispose]: () => {
      process.stdin.off('data', onData)
      process.stdin.setRawMode(false)
      process.stdin.pause()
    },
  }
}

type End = { exitCode: number } | { error: string | undefined }

const readEnd = (reason: string): End => {
  try {
    const told = JSON.parse(reason) as { exitCode?: unknown; error?: unknown }
    if (typeof told.exitCode === 'number') return { exitCode: told.exitCode }
    return { error: typeof told.error === 'string' ? cleanLine(told.error) : undefined }
  } catch {
    return { error: undefined }
  }
}

/** Shows the output of the terminal until its shell or the connection ends. */
const show = (socket: WebSocket): Promise<End> =>
  new Promise((resolve) => {
    socket.on('message', (data: Buffer, isBinary) => {
      // The client ignores text messages, which report the state of the terminal in the sandbox. The client learns the terminal's
      // end when the WebSocket closes.
      if (!isBinary || process.stdout.write(data)) return
      socket.pause()
      process.stdout.once('drain', () => socket.resume())
    })
    socket.once('close', (_code, reason) => resolve(readEnd(reason.toString())))
    socket.resume()
  })

const variables = ({ env }: Work): Record<string, string> => {
  const given = Object.entries({ TERM: env['TERM'] || 'xterm-256color', COLORTERM: env['COLORTERM'] })
  return Object.fromEntries(given.filter((entry): entry is [string, string] => entry[1] !== undefined))
}

const openTerminal = async (work: Work, idOrName: string, attach: string | undefined): Promise<Terminal> => {
  const sandbox = await getSandbox(work.api, idOrName)
  const id = attach ?? `shell-${randomBytes(4).toString('hex')}`
  const terminal = { work, sandbox, id, headers: await lastingHeaders(work.api, sandbox) }
  if (attach === undefined) await ask(terminal, 'POST', ptyUrl(terminal), { id, ...size(), envs: variables(work) })
  else await ask(terminal, 'POST', ptyUrl(terminal, `/${encodeURIComponent(id)}/resize`), size())
  return terminal
}

/** Opens a new terminal or, with the option `attach`, an existing terminal. Returns the exit code of the terminal's shell. */
export const shell = async (work: Work, idOrName: string, { attach }: { attach?: string }): Promise<number> => {
  if (!process.stdin.isTTY || !process.stdout.isTTY)
    throw new Failure(
      'This is no terminal. To run a command without one: alcove exec SANDBOX -- COMMAND',
      exitCodes.usage,
    )
  const terminal = await openTerminal(work, idOrName, attach)
  const { sandbox, id, headers } = terminal
  const { signal } = work.interruption
  const url = ptyUrl(terminal, `/${encodeURIComponent(id)}/connect`)
  const socket = await openSocket(url, { headers, protocol: 'X-Daytona-Pty-Exit-Control', signal })
  keepAlive(socket)
  const onAbort = () => socket.terminate()
  signal.addEventListener('abort', onAbort, { once: true })
  let end: End
  {
    using _size = followSize(terminal)
    using _input = passInput(socket)
    end = await show(socket)
  }
  signal.removeEventListener('abort', onAbort)
  if ('exitCode' in end) return end.exitCode
  process.stdout.write(restoring)
  if (signal.aborted) {
    // The user has closed the window or ended this program. Nobody would use the shell in the sandbox any more, so end it too.
    await ask(terminal, 'DELETE', ptyUrl(terminal, `/${encodeURIComponent(id)}`)).catch(() => {})
    throw signal.reason
  }
  if (end.error !== undefined) throw new Failure(end.error, exitCodes.refused)
  note(
    `If the sandbox is running, its shell continues. To return to it: alcove shell ${cleanLine(sandbox.name)} --attach ${cleanLine(id)}`,
  )
  throw new Failure('The connection to the terminal was lost.', exitCodes.unreachable)
}
