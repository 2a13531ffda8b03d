// For tests: an agent as an ordinary process of this machine, with sanitizers by default.
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Agent, agentAt } from '../agent.ts'

const source = resolve(import.meta.dirname, '../../../../agent')
const binaries = { sanitized: 'alcove-agent-sanitized', release: 'alcove-agent' }

const built = new Set<string>()

/** Builds the agent once per process. The lock makes parallel test files wait meanwhile. */
const build = (kind: keyof typeof binaries): string => {
  const target = `build/${binaries[kind]}`
  if (!built.has(target)) {
    mkdirSync(join(source, 'build'), { recursive: true })
    execFileSync('flock', [`${source}/build/.lock`, 'make', '-s', '-C', source, target], { stdio: 'pipe' })
    built.add(target)
  }
  return join(source, target)
}

export class NativeAgent {
  readonly agent: Agent
  readonly socketPath: string
  readonly pid: number
  /** A fresh directory that is deleted with the agent. */
  readonly directory: string
  readonly #process: ChildProcess
  readonly #exited: Promise<unknown[]>
  #complaints = ''

  private constructor(directory: string, child: ChildProcess) {
    this.directory = directory
    this.socketPath = join(directory, 'agent.sock')
    this.agent = agentAt(this.socketPath)
    this.#process = child
    this.pid = child.pid!
    this.#exited = once(child, 'exit')
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.#complaints += text
    })
  }

  static async start(kind: keyof typeof binaries = 'sanitized'): Promise<NativeAgent> {
    const binary = build(kind)
    const directory = mkdtempSync(join(tmpdir(), 'alcove-agent-'))
    // `server.close()` deletes the path at which the server was bound. So `renameSync` first moves the socket to agent.sock, where
    // the agent keeps using it.
    const server = createServer()
    server.listen({ path: join(directory, 'bound.sock'), backlog: 1024 })
    await once(server, 'listening')
    renameSync(join(directory, 'bound.sock'), join(directory, 'agent.sock'))
    const { fd } = (server as unknown as { _handle: { fd: number } })._handle
    const child = spawn(binary, [], { stdio: ['ignore', 'ignore', 'pipe', fd] })
    server.close()
    const native = new NativeAgent(directory, child)
    await native.agent.info()
    return native
  }

  get openDescriptors(): number {
    return readdirSync(`/proc/${this.pid}/fd`).length
  }

  /** Targets of the agent's open descriptors. A descriptor that is closed during the read is omitted. */
  get openPaths(): string[] {
    return readdirSync(`/proc/${this.pid}/fd`).flatMap((fd) => {
      try {
        return [readlinkSync(`/proc/${this.pid}/fd/${fd}`)]
      } catch {
        return []
      }
    })
  }

  get residentKiB(): number {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.pid}/status`, 'utf8'))![1])
  }

  /** Settles when the agent has no more than `count` open descriptors. */
  async downTo(count: number): Promise<void> {
    await until(() => this.openDescriptors <= count, `at most ${count} descriptors`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill('SIGTERM')
    const [code, signal] = await this.#exited
    rmSync(this.directory, { recursive: true, force: true })
    assert.deepEqual([code, signal, this.#complaints], [0, null, ''])
  }
}

/** Polls until `isTrue` returns true. The limit of 30 s is generous, because only a failing test reaches it. */
export const until = async (isTrue: () => boolean | Promise<boolean>, what: string): Promise<void> => {
  const deadline = Date.now() + 30_000
  while (!(await isTrue())) {
    if (Date.now() > deadline) assert.fail(`never saw ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
