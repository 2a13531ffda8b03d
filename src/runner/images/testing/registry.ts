// For tests: a registry on 127.0.0.1 from which the given images can be pulled (OCI distribution-spec). A test can make this
// registry answer wrongly.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { TestImage } from './oci-image.ts'

type Answer = {
  status: number
  type: string
  body: Buffer
  headers?: Record<string, string>
  /** Number of bytes of the answer's body after which the connection breaks. */
  cutAfter?: number
}

export class TestRegistry {
  readonly #server: Server
  readonly #names = new Map<string, TestImage>()
  readonly #images = new Map<string, TestImage>()
  /** Called before each answer. A test may count the request, change the answer or wait. */
  onRequest: (path: string, answer: Answer, request: IncomingMessage) => Promise<Answer> | Answer = (_path, answer) =>
    answer
  readonly asked: string[] = []

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(): Promise<TestRegistry> {
    const server = createServer((request, response) => {
      registry.#serve(request, response).catch(() => response.destroy())
    })
    const registry = new TestRegistry(server)
    await once(server.listen(0, '127.0.0.1'), 'listening')
    return registry
  }

  /** The registry's address as `host:port`. */
  get host(): string {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('the registry is closed')
    return `127.0.0.1:${address.port}`
  }

  /** Stores an image, or an index and its images (`others`), as `name`, such as `x:1`. Returns the reference to pull. */
  put(name: string, image: TestImage, ...others: TestImage[]): string {
    this.#names.set(name, image)
    for (const each of [image, ...others]) this.#images.set(each.digest, each)
    return `${this.host}/${name}`
  }

  async #serve(request: IncomingMessage, response: ServerResponse) {
    const path = request.url ?? ''
    if (path !== '/v2/') this.asked.push(path)
    const { status, type, body, cutAfter, headers } = await this.onRequest(path, this.#find(path), request)
    response.writeHead(status, { 'content-type': type, 'content-length': body.length, ...headers })
    if (cutAfter !== undefined) {
      response.write(body.subarray(0, cutAfter), () => response.destroy())
      return
    }
    response.end(request.method === 'HEAD' ? undefined : body)
  }

  #find(path: string): Answer {
    if (path === '/v2/') return { status: 200, type: 'application/json', body: Buffer.from('{}') }
    const [, repository, kind, name = ''] = /^\/v2\/(.+)\/(manifests|blobs)\/(.+)$/.exec(path) ?? []
    const error = Buffer.from('{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}')
    const unknown = { status: 404, type: 'application/json', body: error }
    if (kind === 'manifests') {
      const image = name.startsWith('sha256:') ? this.#images.get(name) : this.#names.get(`${repository}:${name}`)
      if (image === undefined) return unknown
      const { mediaType } = JSON.parse(image.manifest.toString()) as { mediaType: string }
      return { status: 200, type: mediaType, body: image.manifest }
    }
    const blob = [...this.#images.values()].flatMap(({ blobs }) => blobs.get(name) ?? [])[0]
    return blob === undefined ? unknown : { status: 200, type: 'application/octet-stream', body: blob }
  }

  async [Symbol.asyncDispose]() {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
