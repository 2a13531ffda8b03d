// For tests: the git endpoints as the gate serves them, with a home and a bare repository. The agent runs on this machine.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '#src/kit/log.ts'
import type { SandboxHere } from '#src/wire/gate-link.ts'
import { NativeAgent } from '../../agent/testing/native-agent.ts'
import { createToolboxServer } from '../../server.ts'
import { assignmentWith } from '../../testing/assignment.ts'
import { calledFor } from '../../testing/called.ts'
import { GitServer } from './git-server.ts'

// biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what the test asserts
type Reply = { status: number; body: any }
type CallOptions = { signal?: AbortSignal }

export class GitRoom {
  /** Start of all URLs of git endpoints, to which for example `/git/status` is appended. */
  readonly url: string
  readonly directory: string
  readonly home: string
  /** A bare repository. Its branch `main` has one commit with one file: `readme`, which contains `one`. */
  readonly upstream: string
  /** An HTTP server for all repositories in the directory of `upstream`. */
  readonly http: GitServer
  readonly native: NativeAgent
  readonly #stop: () => Promise<void>

  private constructor(parts: Pick<GitRoom, 'url' | 'directory' | 'http' | 'native'> & { stop: () => Promise<void> }) {
    this.url = parts.url
    this.directory = parts.directory
    this.home = join(parts.directory, 'home')
    this.upstream = join(parts.directory, 'served/upstream.git')
    this.http = parts.http
    this.native = parts.native
    this.#stop = parts.stop
  }

  static async start(env: Record<string, string> = {}, user = userInfo().username): Promise<GitRoom> {
    const directory = mkdtempSync(join(tmpdir(), 'alcove-git-'))
    mkdirSync(join(directory, 'home'))
    const native = await NativeAgent.start('release')
    const home = { HOME: join(directory, 'home'), GIT_CONFIG_SYSTEM: join(directory, 'system') }
    const assignment = assignmentWith({ user, env: { ...home, ...env } })
    const held: SandboxHere = { id: 'box-1', assignment, status: 'started', socketPath: native.socketPath }
    const server = await createToolboxServer({
      calledBy: () => calledFor(held),
      executeTimeoutSeconds: 10,
      log: silentLog(),
    })
    await server.listen({ port: 0, host: '127.0.0.1' })
    const room = new GitRoom({
      url: `http://127.0.0.1:${(server.server.address() as AddressInfo).port}/toolbox/box-1`,
      directory,
      http: await GitServer.start(join(directory, 'served')),
      native,
      stop: async () => {
        server.server.closeAllConnections()
        await server.close()
      },
    })
    room.#makeUpstream()
    return room
  }

  #makeUpstream() {
    this.git(this.directory, 'init', '--bare', '--initial-branch=main', this.upstream)
    this.git(this.directory, 'clone', this.upstream, 'seed')
    this.commit(join(this.directory, 'seed'), { readme: 'one\n' }, 'first')
    this.git(join(this.directory, 'seed'), 'push', 'origin', 'HEAD:main')
  }

  /** Runs git directly on this machine, not through the API. */
  git(directory: string, ...args: string[]): string {
    return execFileSync('git', args, {
      cwd: directory,
      encoding: 'utf8',
      stdio: 'pipe',
      env: {
        PATH: '/usr/bin:/bin',
        HOME: this.home,
        GIT_CONFIG_GLOBAL: '/dev/null',
        GIT_CONFIG_NOSYSTEM: '1',
        GIT_AUTHOR_NAME: 'Seed',
        GIT_AUTHOR_EMAIL: 'seed@example.com',
        GIT_COMMITTER_NAME: 'Seed',
        GIT_COMMITTER_EMAIL: 'seed@example.com',
      },
    })
  }

  commit(directory: string, files: Record<string, string>, message: string): string {
    for (const [name, content] of Object.entries(files)) writeFileSync(join(directory, name), content)
    this.git(directory, 'add', '--all')
    this.git(directory, 'commit', '--quiet', '--allow-empty', '-m', message)
    return this.git(directory, 'rev-parse', 'HEAD').trim()
  }

  /** Adds a commit to a branch of the upstream, as another user. */
  advance(files: Record<string, string>, branch = 'main'): string {
    const seed = join(this.directory, 'seed')
    const hash = this.commit(seed, files, `to ${branch}`)
    this.git(seed, 'push', 'origin', `HEAD:refs/heads/${branch}`)
    return hash
  }

  async call(method: string, path: string, body?: unknown, { signal }: CallOptions = {}): Promise<Reply> {
    const reply = await fetch(`${this.url}/git${path}`, {
      method,
      ...(signal ? { signal } : {}),
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    })
    const text = await reply.text()
    return { status: reply.status, body: text === '' ? undefined : JSON.parse(text) }
  }

  post(path: string, body: unknown, options?: CallOptions): Promise<Reply> {
    return this.call('POST', path, body, options)
  }

  get(path: string, query: Record<string, string>): Promise<Reply> {
    return this.call('GET', `${path}?${new URLSearchParams(query)}`)
  }

  async done(path: string, body: unknown): Promise<Reply> {
    const reply = await this.post(path, body)
    assert.ok(reply.status < 300, `${path}: ${JSON.stringify(reply)}`)
    return reply
  }

  /** Clones the upstream through the API. Returns the path of the clone. */
  async clone(name = 'work'): Promise<string> {
    const path = join(this.home, name)
    await this.done('/clone', { url: `file://${this.upstream}`, path })
    return path
  }

  /** Lists the files below the home that contain these bytes. */
  filesWith(secret: string): string[] {
    return readdirSync(this.home, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((file) => readFileSync(file).includes(secret))
  }

  async [Symbol.asyncDispose]() {
    await this.#stop()
    await this.http[Symbol.asyncDispose]()
    await this.native[Symbol.asyncDispose]()
    rmSync(this.directory, { recursive: true, force: true })
  }
}

/** Status and code of a refusal, for comparison. */
export const refusal = ({ status, body }: Reply): [number, string] => [status, body?.code]
