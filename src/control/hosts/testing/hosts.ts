// Starts control with a port for hosts. Tests call this port as machines, with a certificate or without.
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { WebSocket } from 'ws'
import { type App, createApp } from '#src/control/app.ts'
import { openDatabase } from '#src/control/storage/database.ts'
import { newKeyPair } from '#src/kit/testing/authority.ts'
import { controlHostName, type HostCertificates, type HostProgram } from '#src/wire/hosts.ts'
import { type ControlOptions, startControl, type TestControl } from '#test/control/harness.ts'
import { HostAuthority } from '../authority.ts'
import type { HostConnections } from '../connections.ts'

/** The version of control in these tests. */
export const version = '0.0.0-test'

export type Shown = { cert: string; key: string }

// biome-ignore lint/suspicious/noExplicitAny: a test asserts on what it expects to be there
export type Answer = { status: number; body: any; headers: IncomingMessage['headers'] }

export type Machine = { keys: Record<HostProgram, string>; privateKeys: Record<HostProgram, string> }

export const newMachine = (): Machine => {
  const [runner, gate] = [newKeyPair(), newKeyPair()]
  return {
    keys: { runner: runner.publicKey, gate: gate.publicKey },
    privateKeys: { runner: runner.privateKey, gate: gate.privateKey },
  }
}

export type Joined = Machine & { answer: HostCertificates; shows: (program: HostProgram) => Shown }

const asJoined = (machine: Machine, answer: HostCertificates): Joined => ({
  ...machine,
  answer,
  shows: (program) => ({ cert: answer.certificates[program], key: machine.privateKeys[program] }),
})

export type HostsControl = TestControl & {
  port: number
  authority: HostAuthority
  /** Adds a runner through the API, and returns its token. */
  add: (name: string) => Promise<string>
  /** Calls an endpoint on the port for hosts. `shown`: the certificate of the caller; default: none. */
  ask: (method: string, path: string, options?: { body?: unknown; shown?: Shown; headers?: object }) => Promise<Answer>
  trade: (token: string, machine: Machine, ofHost?: string) => Promise<Answer>
  /** Adds a runner, and uses its token to join as a new machine. Returns the machine and its certificates. */
  join: (name: string) => Promise<Joined>
  /** Opens a WebSocket to the port for hosts with the certificate `shown`. */
  link: (path: string, shown: Shown) => WebSocket
  connections: HostConnections
}

const listenForHosts = async ({ hosts }: App): Promise<number> => {
  await hosts!.server.listen({ host: '127.0.0.1', port: 0 })
  return (hosts!.server.server.address() as AddressInfo).port
}

const linkTo =
  (port: number, { certificate }: HostAuthority): HostsControl['link'] =>
  (path, shown) => {
    const options = { ca: certificate, servername: controlHostName, ...shown }
    return new WebSocket(`wss://127.0.0.1:${port}/api${path}`, options)
  }

/** Starts another control process over the same database. */
export const anotherControl = async ({
  parts,
  url,
  authority,
}: HostsControl): Promise<Pick<HostsControl, 'link'> & AsyncDisposable> => {
  const database = openDatabase(url)
  const app = await createApp({ ...parts, database }, { sweepSeconds: 0, mostWarm: 0 })
  return {
    link: linkTo(await listenForHosts(app), authority),
    [Symbol.asyncDispose]: async () => {
      await app.close()
      await database.close()
    },
  }
}

/** Starts a control process that listens for hosts on 127.0.0.1. */
export const startWithHosts = async (options: ControlOptions = {}): Promise<HostsControl> => {
  const settings = { hostsListen: { host: '127.0.0.1', port: 0 }, ...options.settings }
  const control = await startControl({ ...options, settings })
  const port = await listenForHosts(control.app)
  const authority = await HostAuthority.open(control.parts)
  const secure = { host: '127.0.0.1', port, ca: authority.certificate, servername: controlHostName }

  const ask: HostsControl['ask'] = async (method, path, { body, shown, headers = {} } = {}) => {
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    const asking = request({
      ...{ ...secure, ...shown, method, path: `/api${path}`, agent: false },
      headers: { ...type, ...headers },
    })
    asking.end(typeof body === 'string' || body === undefined ? body : JSON.stringify(body))
    const [reply] = (await once(asking, 'response')) as [IncomingMessage]
    const text = (await reply.toArray()).join('')
    return { status: reply.statusCode!, body: text === '' ? undefined : JSON.parse(text), headers: reply.headers }
  }

  const add = async (name: string) => (await control.as('admin').post('/runners', { name })).body.apiKey as string
  const trade: HostsControl['trade'] = (token, { keys }, ofHost = version) =>
    ask('POST', '/runners/join', { body: { token, version: ofHost, keys } })
  return {
    ...control,
    ...{ port, authority, add, ask, trade },
    join: async (name) => {
      const machine = newMachine()
      return asJoined(machine, (await trade(await add(name), machine)).body)
    },
    link: linkTo(port, authority),
    connections: control.app.hosts!.connections,
  }
}
