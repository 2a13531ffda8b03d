// Starts a server from a checkout and calls it, for measurements. Each connection serves several calls. The class `Served` also
// reads the processor time of the server's programs.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Pool } from 'undici'
import { WebSocket } from 'ws'
import { agentSocketsOf, runDirectoryOf } from '#src/kit/instance.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { dataDirectoryAt, findAdminKey } from '#src/up/data-directory.ts'
import { findRunningUp } from '#src/up/state-file.ts'
import { freePorts } from '#test/sandboxes/free-ports.ts'
import { agentPids } from './memory.ts'
import type { Reader } from './reader.ts'

export type Sandbox = { id: string; state: string; toolboxProxyUrl: string; user: string }

const threadsMs = (pid: string): number =>
  readdirSync(`/proc/${pid}/task`)
    .map((task) => Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]) / 1e6)
    .reduce((sum, ms) => sum + ms, 0)

/** Returns the processor time of a process and its running children, in milliseconds. Returns 0 if the process has ended. */
export const processorMs = (pid: number): number => {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
    return [String(pid), ...children].map(threadsMs).reduce((sum, ms) => sum + ms, 0)
  } catch {
    return 0
  }
}

const startSeconds = 300

export class Served {
  readonly checkout: string
  readonly #directory: string
  readonly #child: ReturnType<typeof spawn>
  readonly #key: string
  readonly #api: Pool
  readonly #toolboxes: Pool
  readonly #toolboxUrl: string

  private constructor(checkout: string, directory: string, port: number, child: ReturnType<typeof spawn>) {
    this.checkout = checkout
    this.#directory = directory
    this.#child = child
    this.#key = findAdminKey(dataDirectoryAt(directory)) ?? ''
    this.#api = new Pool(`http://127.0.0.1:${port}`, { connections: 64 })
    this.#toolboxes = new Pool(`http://127.0.0.1:${port + 1}`, { connections: 64 })
    this.#toolboxUrl = `http://127.0.0.1:${port + 1}`
  }

  static async start(checkout: string): Promise<Served> {
    const directory = mkdtempSync(join(tmpdir(), 'alcove-bench-'))
    const port = await freePorts(3)
    const child = spawn(resolve(checkout, 'alcove'), ['up', '--data', directory, '--port', String(port)], {
      cwd: checkout,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ALCOVE_OVERCOMMIT: '2000,200,2000', ALCOVE_MOST_WARM: '0' },
    })
    const late = setTimeout(() => child.kill('SIGTERM'), startSeconds * 1000)
    let said = ''
    for await (const chunk of child.stdout!.iterator({ destroyOnReturn: false })) {
      said += String(chunk)
      if (said.includes('Alcove is ready')) break
    }
    clearTimeout(late)
    if (!said.includes('Alcove is ready')) throw new Error(`${checkout} did not start:\n${said}`)
    child.stdout!.resume()
    return new Served(checkout, directory, port, child)
  }

  async #ask(pool: Pool, method: 'GET' | 'POST' | 'DELETE', path: string, body?: string | Buffer, type?: string) {
    const headers: Record<string, string> = { authorization: `Bearer ${this.#key}` }
    if (body !== undefined) headers['content-type'] = type ?? 'application/json'
    const reply = await pool.request({ method, path, headers, ...(body === undefined ? {} : { body }) })
    const bytes = Buffer.from(await reply.body.arrayBuffer())
    if (reply.statusCode >= 300) throw new Error(`${method} ${path}: ${reply.statusCode} ${bytes.toString()}`)
    return bytes
  }

  async api<T = Sandbox>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: object): Promise<T> {
    const bytes = await this.#ask(this.#api, method, `/api${path}`, body && JSON.stringify(body))
    return (bytes.length === 0 ? undefined : JSON.parse(bytes.toString())) as T
  }

  /** Calls the toolbox of a sandbox. Returns the body of the answer. */
  toolbox(method: 'GET' | 'POST' | 'DELETE', { id }: Sandbox, path: string, body?: object | Buffer): Promise<Buffer> {
    return Buffer.isBuffer(body)
      ? this.#ask(this.#toolboxes, method, `/toolbox/${id}${path}`, body, 'application/octet-stream')
      : this.#ask(this.#toolboxes, method, `/toolbox/${id}${path}`, body && JSON.stringify(body))
  }

  /** Runs a command in a sandbox and returns its output. Throws if the exit code is not 0. */
  async execute(sandbox: Sandbox, command: string): Promise<string> {
    const answer = await this.toolbox('POST', sandbox, '/process/execute', { command, timeout: 120 })
    const { exitCode, result } = JSON.parse(answer.toString()) as { exitCode: number; result: string }
    if (exitCode !== 0) throw new Error(`${command}: exit code ${exitCode}: ${result}`)
    return result
  }

  /** Sends or fetches a file with curl, which needs as little processor time as `cat`. */
  async curl({ id }: Sandbox, path: string, ...args: string[]): Promise<void> {
    const url = `${this.#toolboxUrl}/toolbox/${id}${path}`
    const argv = ['curl', '-sS', '--fail', '-H', `Authorization: Bearer ${this.#key}`, ...args, url]
    await runCommand(argv, { timeoutMs: 120_000 })
  }

  /** Follows the log of a command until the log ends. */
  async readLog({ readWhole }: Reader, { id }: Sandbox, path: string): Promise<void> {
    await readWhole(new URL(`${this.#toolboxUrl}/toolbox/${id}${path}`), this.#key)
  }

  preview({ id }: Sandbox, port: number): Promise<Buffer> {
    return this.#ask(this.#toolboxes, 'GET', `/preview/${id}/${port}/`)
  }

  socket({ id }: Sandbox, path: string): WebSocket {
    const headers = { authorization: `Bearer ${this.#key}` }
    return new WebSocket(`${this.#toolboxUrl.replace('http', 'ws')}/toolbox/${id}${path}`, {
      headers,
      perMessageDeflate: false,
    })
  }

  /**
   * Returns the path of the agent's socket of a sandbox. An older checkout, without a gate, has the socket in another directory.
   */
  agentSocket({ id }: Sandbox): string {
    const { instance } = dataDirectoryAt(realpathSync(this.#directory))
    const known = [agentSocketsOf(instance), join(runDirectoryOf(instance), 's')]
    const path = known.map((directory) => join(directory, `${id}.sock`)).find(existsSync)
    if (path === undefined) throw new Error(`the agent's socket of ${id} is not found`)
    return path
  }

  agentPid({ id }: Sandbox): number {
    const pid = agentPids().find((each) => readFileSync(`/proc/${each}/cgroup`, 'utf8').includes(id))
    if (pid === undefined) throw new Error(`the agent of ${id} is not found`)
    return pid
  }

  /** Returns the pid of each program that `up` has started, by the name of the program. */
  programs(): Record<string, number> {
    const up = findRunningUp(dataDirectoryAt(this.#directory).stateFile)
    return Object.fromEntries((up?.programs ?? []).map(({ name, pid }) => [name, pid]))
  }

  /** Returns the URL of the database that control uses. */
  databaseUrl(): string {
    const environment = readFileSync(`/proc/${this.programs()['control']}/environ`, 'utf8').split('\0')
    const variable = 'ALCOVE_DATABASE_URL='
    return environment.find((line) => line.startsWith(variable))!.slice(variable.length)
  }

  async [Symbol.asyncDispose]() {
    await Promise.all([this.#api.destroy(), this.#toolboxes.destroy()])
    const ended = once(this.#child, 'exit')
    if (this.#child.exitCode === null && this.#child.kill('SIGTERM')) await ended
    const purge = [resolve(this.checkout, 'alcove'), 'purge', '--yes', '--data', this.#directory]
    await runCommand(purge, { timeoutMs: 120_000 })
    rmSync(this.#directory, { recursive: true, force: true })
  }
}
