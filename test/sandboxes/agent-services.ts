// A program that simulates the model APIs of Anthropic and OpenAI over HTTPS and an npm registry over HTTP, for coding agents. It
// runs in the network namespace of a simulated Internet. It reads an object `Services` from standard input. For each call to a
// model, it prints the headers with the caller's key as a line of JSON.
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

/** `nodeModules` is a directory with the packages that the simulated npm registry offers. */
export type Services = { address: string; certificate: string; privateKey: string; nodeModules: string }
export type ModelCall = { host: string; authorization?: string; key?: string }

type Event = { type: string; [field: string]: unknown }

const words = 'hello from the model'

const message = { id: 'message', type: 'message', role: 'assistant', model: 'model', content: [], stop_reason: null }
const anthropicEvents: Event[] = [
  { type: 'message_start', message: { ...message, usage: { input_tokens: 1, output_tokens: 1 } } },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: words } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 1 } },
  { type: 'message_stop' },
]

const content = [{ type: 'output_text', text: words, annotations: [] }]
const item = { type: 'message', id: 'item', role: 'assistant', status: 'completed', content }
const response = { id: 'response', object: 'response', created_at: 1, status: 'completed', model: 'model' }
const openAiEvents: Event[] = [
  { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
  { type: 'response.output_item.added', output_index: 0, item: { ...item, content: [] } },
  { type: 'response.output_text.delta', item_id: 'item', output_index: 0, content_index: 0, delta: words },
  { type: 'response.output_item.done', output_index: 0, item },
  {
    type: 'response.completed',
    response: { ...response, output: [item], usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } },
  },
]

const answerModel = async (request: IncomingMessage, answer: ServerResponse) => {
  await text(request)
  // The coding agent Codex first tries to open a WebSocket. After status 426, it uses HTTPS instead.
  if (request.headers.upgrade !== undefined) return answer.writeHead(426).end()
  const path = request.url?.replace(/\?.*/, '')
  const events = path === '/v1/messages' ? anthropicEvents : path === '/v1/responses' ? openAiEvents : undefined
  if (events === undefined || request.method !== 'POST') return answer.writeHead(404).end('{}')
  const { host, authorization, 'x-api-key': key } = request.headers
  process.stdout.write(`${JSON.stringify({ host, authorization, key })}\n`)
  answer.writeHead(200, { 'content-type': 'text/event-stream' })
  answer.end(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''))
}

/** Returns the directories of the packages in `node_modules`, including those in scopes such as `@openai`. */
const packagesIn = (nodeModules: string): string[] =>
  readdirSync(nodeModules)
    .filter((name) => !name.startsWith('.') && statSync(join(nodeModules, name)).isDirectory())
    .flatMap((name) => (name.startsWith('@') ? packagesIn(join(nodeModules, name)) : [join(nodeModules, name)]))

type Manifest = { name: string; version: string }

const startRegistry = ({ address, nodeModules }: Services) => {
  const packages = packagesIn(nodeModules).map((directory) => ({
    directory,
    manifest: JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as Manifest,
  }))
  const describe = (name: string) => {
    const versions = packages.flatMap(({ manifest }, index) =>
      manifest.name === name ? { ...manifest, dist: { tarball: `http://${address}/tarballs/${index}` } } : [],
    )
    const latest = versions.find(({ version }) => !version.includes('-'))?.version
    const byVersion = Object.fromEntries(versions.map((manifest) => [manifest.version, manifest]))
    return versions.length === 0 ? undefined : { name, 'dist-tags': { latest }, versions: byVersion }
  }
  const server = createHttpServer((request, answer) => {
    const path = decodeURIComponent(request.url ?? '/').slice(1)
    const { directory } = packages[Number(/^tarballs\/(\d+)$/.exec(path)?.[1])] ?? {}
    if (directory !== undefined) {
      const tar = spawn('tar', ['--create', '--directory', directory, '--transform', 's,^[.],package,', '.'])
      return tar.stdout.pipe(answer)
    }
    const described = describe(path)
    answer.writeHead(described === undefined ? 404 : 200, { 'content-type': 'application/json' })
    return answer.end(JSON.stringify(described ?? {}))
  })
  server.listen(80, address)
}

const services = JSON.parse(await text(process.stdin)) as Services
const { address, certificate, privateKey } = services
startRegistry(services)
createHttpsServer({ cert: certificate, key: privateKey }, (request, answer) => {
  answerModel(request, answer).catch(() => answer.destroy())
}).listen(443, address, () => process.stdout.write('ready\n'))
