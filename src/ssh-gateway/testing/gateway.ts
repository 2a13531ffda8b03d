// For tests: starts an SSH gateway with a real toolbox and agent, and a simulated control that knows the tokens of the test.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import ssh2, { type Client, type ClientChannel, type ConnectConfig, type ExecOptions } from 'ssh2'
import { silentLog } from '#src/kit/log.ts'
import { newPrivateKey } from '#src/kit/ssh-key.ts'
import { startToolbox, type Toolbox } from '#src/toolbox/testing/toolbox.ts'
import { type SshGatewayBounds, startSshGateway } from '../main.ts'

type Known = { state: string }

export type TestGateway = AsyncDisposable & {
  port: number
  box: Toolbox
  /** The tokens that the simulated control knows. A test may change them. */
  tokens: Map<string, Known>
  /** The tokens that control was asked about, in order. */
  asked: string[]
  connect: (token?: string, config?: ConnectConfig) => Promise<TestClient>
}

export type TestClient = Disposable & {
  client: Client
  /** Runs a command to its end. `input`: what the command reads from its standard input. */
  run: (command: string, options?: ExecOptions & { input?: string | Buffer }) => Promise<Ran>
  start: (command: string, options?: ExecOptions) => Promise<ClientChannel>
}

export type Ran = { out: string; err: string; code: number | null; signal?: string | undefined }

export const token = `ssh_${'a'.repeat(32)}`

export const toEnd = async (channel: ClientChannel): Promise<Ran> => {
  let [out, err] = ['', '']
  channel.on('data', (data: Buffer) => {
    out += data.toString('latin1')
  })
  channel.stderr.on('data', (data: Buffer) => {
    err += data.toString('latin1')
  })
  const ending = Promise.withResolvers<{ code: number | null; signal?: string }>()
  channel.once('exit', (code: number | null, signal?: string) =>
    ending.resolve({ code, ...(signal ? { signal } : {}) }),
  )
  channel.once('close', () => ending.resolve({ code: null }))
  await once(channel, 'close')
  return { out, err, ...(await ending.promise) }
}

const clientOf = (client: Client): TestClient => {
  client.on('error', () => undefined)
  const start = (command: string, options: ExecOptions = {}) =>
    new Promise<ClientChannel>((resolve, reject) => {
      client.exec(command, options, (error, channel) => (error ? reject(error) : resolve(channel)))
    })
  return {
    client,
    start,
    run: async (command, { input, ...options } = {}) => {
      const channel = await start(command, options)
      const ran = toEnd(channel)
      channel.end(input)
      return await ran
    },
    [Symbol.dispose]: () => void client.destroy(),
  }
}

export const startTestGateway = async (bounds: SshGatewayBounds = {}): Promise<TestGateway> => {
  const tokens = new Map<string, Known>([[token, { state: 'started' }]])
  const asked: string[] = []
  const control = createServer((request, response) => {
    const given = new URL(request.url ?? '/', 'http://control').searchParams.get('token') ?? ''
    asked.push(given)
    const known = tokens.get(given)
    const expiresAt = '2100-01-01T00:00:00.000Z'
    const answer = known ? { valid: true, sandboxId: 'box-1', expiresAt, ...known } : { valid: false, sandboxId: '' }
    const isOurs = request.headers.authorization === 'Bearer the-gateway-key'
    response.writeHead(isOurs ? 200 : 401, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  }).listen(0, '127.0.0.1')
  await once(control, 'listening')
  const box = await startToolbox()
  const gateway = await startSshGateway(
    {
      listen: { host: '127.0.0.1', port: 0 },
      controlUrl: new URL(`http://127.0.0.1:${(control.address() as AddressInfo).port}`),
      gateUrl: new URL(box.url('/')),
      key: 'the-gateway-key',
      hostKey: newPrivateKey(),
    },
    silentLog(),
    bounds,
  )
  const { port } = gateway
  return {
    port,
    box,
    tokens,
    asked,
    connect: async (username = token, config = {}) => {
      const client = new ssh2.Client()
      const ready = Promise.withResolvers<void>()
      client.once('ready', () => ready.resolve())
      client.once('error', (error) => ready.reject(error))
      client.once('close', () => ready.reject(new Error('the gateway closed the connection')))
      client.connect({ host: '127.0.0.1', port, username, readyTimeout: 60_000, ...config })
      await ready.promise
      return clientOf(client)
    },
    [Symbol.asyncDispose]: async () => {
      await gateway.close()
      control.closeAllConnections()
      control.close()
      await box[Symbol.asyncDispose]()
    },
  }
}
