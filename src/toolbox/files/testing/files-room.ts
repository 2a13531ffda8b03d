// For tests: the file endpoints as the gate serves them, an agent on this machine, and a directory that every user may enter.
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import {
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { checkAnswer } from '#src/http/testing/checked-answers.ts'
import { silentLog } from '#src/kit/log.ts'
import type { SandboxHere } from '#src/wire/gate-link.ts'
import { NativeAgent } from '../../agent/testing/native-agent.ts'
import { toolboxEndpoints } from '../../endpoints.ts'
import { createToolboxServer } from '../../server.ts'
import { assignmentWith, searchPath } from '../../testing/assignment.ts'
import { calledFor } from '../../testing/called.ts'

export type Reply = {
  status: number
  headers: IncomingHttpHeaders
  bytes: Buffer
  text: string
  /** The body, parsed if it is JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what the test asserts
  body: any
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const readReply = async (answer: IncomingMessage): Promise<Reply> => {
  const bytes = Buffer.concat(await answer.toArray())
  const text = bytes.toString('utf8')
  return { status: answer.statusCode!, headers: answer.headers, bytes, text, body: parse(text) }
}

export class FilesRoom {
  readonly directory: string
  readonly native: NativeAgent
  readonly #port: number
  readonly #stop: () => Promise<void>

  private constructor(directory: string, native: NativeAgent, port: number, stop: () => Promise<void>) {
    this.directory = directory
    this.native = native
    this.#port = port
    this.#stop = stop
  }

  /** Starts the endpoints and one agent. A test of permissions passes the user `nobody`, because root may do everything. */
  static async start({ user = userInfo().username, env = {} }: { user?: string; env?: Record<string, string> } = {}) {
    const directory = mkdtempSync(join(tmpdir(), 'alcove-files-'))
    chmodSync(directory, 0o755)
    const native = await NativeAgent.start('release')
    const assignment = assignmentWith({ user, env: { PATH: searchPath, ...env } })
    const held: SandboxHere = { id: 'box-1', assignment, status: 'started', socketPath: native.socketPath }
    const server = await createToolboxServer({
      calledBy: () => calledFor(held),
      executeTimeoutSeconds: 10,
      log: silentLog(),
    })
    await server.listen({ port: 0, host: '127.0.0.1' })
    const { port } = server.server.address() as AddressInfo
    return new FilesRoom(directory, native, port, async () => {
      server.server.closeAllConnections()
      await server.close()
    })
  }

  /** URL of an endpoint, for calls for which this class has no method. */
  url(path: string): string {
    return `http://127.0.0.1:${this.#port}/toolbox/box-1/files${path}`
  }

  at(...names: string[]): string {
    return join(this.directory, ...names)
  }

  /** A directory that every user may write to. */
  openDirectory(name: string): string {
    mkdirSync(this.at(name))
    chmodSync(this.at(name), 0o777)
    return this.at(name)
  }

  /** Starts a request. The test itself writes and ends the body. */
  begin(
    method: string,
    path: string,
    query: Record<string, string> = {},
    headers: OutgoingHttpHeaders = {},
  ): ClientRequest {
    const outgoing = request({
      port: this.#port,
      method,
      path: `/toolbox/box-1/files${path}?${new URLSearchParams(query)}`,
      headers,
    })
    // The answer may come before the whole body was sent. Ignore errors of sending the remaining bytes.
    outgoing.on('error', () => undefined)
    return outgoing
  }

  async settle(outgoing: ClientRequest): Promise<Reply> {
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
    const reply = await readReply(answer)
    const path = outgoing.path.replace('/toolbox/box-1', '')
    checkAnswer(toolboxEndpoints, { method: outgoing.method, path }, reply)
    return reply
  }

  get(path: string, query: Record<string, string> = {}, headers: OutgoingHttpHeaders = {}): Promise<Reply> {
    return this.settle(this.begin('GET', path, query, headers).end())
  }

  delete(query: Record<string, string>): Promise<Reply> {
    return this.settle(this.begin('DELETE', '', query).end())
  }

  /** Sends a POST request without a body, to an endpoint that reads only the query, such as `POST /files/move`. */
  post(path: string, query: Record<string, string>): Promise<Reply> {
    return this.settle(this.begin('POST', path, query).end())
  }

  send(path: string, body: unknown): Promise<Reply> {
    return this.settle(this.begin('POST', path, {}, { 'content-type': 'application/json' }).end(JSON.stringify(body)))
  }

  upload(path: string, bytes: string | Buffer, type = 'application/octet-stream'): Promise<Reply> {
    return this.settle(this.begin('POST', '/upload-v2', { path }, { 'content-type': type }).end(bytes))
  }

  async form(path: string, query: Record<string, string>, form: FormData): Promise<Reply> {
    const encoded = new Response(form)
    const type = encoded.headers.get('content-type')!
    return await this.settle(
      this.begin('POST', path, query, { 'content-type': type }).end(Buffer.from(await encoded.arrayBuffer())),
    )
  }

  async [Symbol.asyncDispose]() {
    await this.#stop()
    await this.native[Symbol.asyncDispose]()
    rmSync(this.directory, { recursive: true, force: true })
  }
}

/** Status and code of a refusal. */
export const refusal = ({ status, body }: Reply): [number, string] => [status, body?.code]
