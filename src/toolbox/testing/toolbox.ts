// For tests: the toolbox as the gate serves it, with an agent that is an ordinary process of this machine.
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type ClientRequest, type OutgoingHttpHeaders, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WebSocket } from 'ws'
import { checkAnswer } from '#src/http/testing/checked-answers.ts'
import { silentLog } from '#src/kit/log.ts'
import type { SandboxHere } from '#src/wire/gate-link.ts'
import type { Assignment, ImageConfig } from '#src/wire/runner-link.ts'
import { NativeAgent } from '../agent/testing/native-agent.ts'
import { toolboxEndpoints } from '../endpoints.ts'
import { createToolboxServer } from '../server.ts'
import { assignmentWith } from './assignment.ts'
import { calledFor } from './called.ts'

// biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what the test asserts
export type Reply = { status: number; body: any }

export type Toolbox = AsyncDisposable & {
  native: NativeAgent
  assignment: Assignment
  /** A new temporary directory. It is deleted when the toolbox is disposed of. */
  directory: string
  held: SandboxHere
  get: (path: string, headers?: OutgoingHttpHeaders) => Promise<Reply>
  post: (path: string, body: unknown, headers?: OutgoingHttpHeaders) => Promise<Reply>
  delete: (path: string) => Promise<Reply>
  /** Returns the URL of a path that starts with a slash. */
  url: (path: string) => string
  /** Opens a WebSocket, whose events the test follows. */
  socket: (path: string, subprotocols?: string[]) => WebSocket
  /** Starts a request and returns it, so that the test can break it off. */
  call: (path: string, body: unknown, headers?: OutgoingHttpHeaders) => ClientRequest
}

type Options = {
  /** The configuration of the sandbox's image. Absent: the image has no configuration. */
  config?: ImageConfig
  executeTimeoutSeconds?: number
}

export const startToolbox = async (changes: Partial<Assignment> = {}, options: Options = {}): Promise<Toolbox> => {
  const { config, executeTimeoutSeconds = 10 } = options
  const native = await NativeAgent.start('release')
  const directory = mkdtempSync(join(tmpdir(), 'alcove-toolbox-'))
  const assignment = assignmentWith(changes)
  const held: SandboxHere = {
    id: 'box-1',
    assignment,
    status: 'started',
    socketPath: native.socketPath,
    ...(config && { config }),
  }
  const server = await createToolboxServer({
    calledBy: (_request, id) => (id === held.id ? calledFor(held) : undefined),
    executeTimeoutSeconds,
    log: silentLog(),
  })
  await server.listen({ port: 0, host: '127.0.0.1' })
  const { port } = server.server.address() as AddressInfo

  const start = (method: string, path: string, body?: unknown, more: OutgoingHttpHeaders = {}) => {
    const url = path.startsWith('/toolbox/') ? path : `/toolbox/box-1${path}`
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const headers = { 'content-type': 'application/json', ...more }
    return request({ port, method, path: url, headers }).end(body === undefined ? undefined : text)
  }
  const settle = async (outgoing: ClientRequest): Promise<Reply> => {
    const [answer] = await once(outgoing, 'response')
    // The answer may come before the request's whole body was sent. Ignore errors of sending the remaining bytes.
    outgoing.on('error', () => undefined)
    let text = ''
    for await (const piece of answer.setEncoding('utf8')) text += piece
    const isText = String(answer.headers['content-type']).startsWith('text/plain')
    const body = isText ? text : text === '' ? undefined : JSON.parse(text)
    const path = outgoing.path.replace('/toolbox/box-1', '')
    // Old SDKs get logs as text, which no schema describes.
    if (!isText)
      checkAnswer(toolboxEndpoints, { method: outgoing.method, path }, { status: answer.statusCode, body, text })
    return { status: answer.statusCode, body }
  }
  return {
    native,
    assignment,
    directory,
    held,
    get: (path, headers) => settle(start('GET', path, undefined, headers)),
    post: (path, body, headers) => settle(start('POST', path, body, headers)),
    delete: (path) => settle(start('DELETE', path)),
    url: (path) => `http://127.0.0.1:${port}${path}`,
    socket: (path, subprotocols = []) => new WebSocket(`ws://127.0.0.1:${port}/toolbox/box-1${path}`, subprotocols),
    call: (path, body, headers) => start('POST', path, body, headers),
    async [Symbol.asyncDispose]() {
      server.server.closeAllConnections()
      await server.close()
      await native[Symbol.asyncDispose]()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
