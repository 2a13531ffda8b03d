// The proxy that puts secrets into requests. The runner starts this proxy, without privileges, with the first sandbox that has
// secrets. The proxy recognizes a sandbox by its source address: the firewall lets no sandbox use the address of another sandbox.
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { FromEgress, KnownSecret, ToEgress } from '#src/wire/secrets.ts'
import { serveConnection } from './connection.ts'
import { originalDestinationOf } from './original-destination.ts'
import { Places } from './places.ts'

/** How long a connection waits for the secrets of its sandbox to arrive, in ms. */
const awaitedMs = 10_000
/** Maximum number of connection problems that are added to the timeline of one sandbox in ten minutes. */
const mostTroubles = 20
const troublesMs = 10 * 60_000

type Sandbox = {
  owner: string
  secrets: readonly KnownSecret[] | 'awaited'
  connections: Set<Socket>
  wakes: Set<() => void>
  troubles: Set<string>
}

const sandboxes = new Map<string, Sandbox>()
const places = new Places()

const say = (word: FromEgress) => void process.send?.(word, undefined, undefined, () => {})

const noteTrouble = (address: string, { troubles }: Sandbox, about: string, sentence: string) => {
  if (troubles.has(about) || troubles.size >= mostTroubles) return
  troubles.add(about)
  setTimeout(() => troubles.delete(about), troublesMs).unref()
  say({ type: 'trouble', address, sentence })
}

const untilKnown = (sandbox: Sandbox): Promise<void> =>
  new Promise((resolve) => {
    if (sandbox.secrets !== 'awaited') return resolve()
    const wake = () => {
      clearTimeout(late)
      sandbox.wakes.delete(wake)
      resolve()
    }
    const late = setTimeout(wake, awaitedMs)
    sandbox.wakes.add(wake)
  })

const take = (socket: Socket) => {
  socket.on('error', () => {})
  const address = socket.remoteAddress ?? ''
  const sandbox = sandboxes.get(address)
  const destination = originalDestinationOf(socket)
  const isOurs = destination?.address === socket.localAddress
  if (sandbox === undefined || destination === undefined || isOurs) return void socket.resetAndDestroy()
  const givePlace = places.take(address, sandbox.owner)
  if (givePlace === undefined) return void socket.resetAndDestroy()
  sandbox.connections.add(socket)
  socket.once('close', () => {
    sandbox.connections.delete(socket)
    givePlace()
  })
  const secrets = () => (sandbox.secrets === 'awaited' ? [] : sandbox.secrets)
  const known = async () => {
    await untilKnown(sandbox)
    // The secrets did not arrive in time. Without the secrets, the server would refuse the request, and the user could not know
    // why.
    if (sandbox.secrets === 'awaited') socket.resetAndDestroy()
  }
  const trouble = (about: string, sentence: string) => noteTrouble(address, sandbox, about, sentence)
  serveConnection(socket, { secrets, known, destination, trouble }).catch(() => socket.destroy())
}

const learn = ({ address, owner, secrets }: Extract<ToEgress, { type: 'sandbox' }>) => {
  const known = sandboxes.get(address)
  if (known === undefined) {
    sandboxes.set(address, { owner, secrets, connections: new Set(), wakes: new Set(), troubles: new Set() })
    return
  }
  known.owner = owner
  known.secrets = secrets
  if (secrets !== 'awaited') for (const wake of [...known.wakes]) wake()
}

const forget = (address: string) => {
  const known = sandboxes.get(address)
  sandboxes.delete(address)
  for (const socket of known?.connections ?? []) socket.destroy()
}

process.on('message', (word: ToEgress) => {
  if (word.type === 'sandbox') return learn(word)
  if (word.type === 'gone') return forget(word.address)
  const server = createServer({ allowHalfOpen: true }, take)
  server.listen({ host: word.address, port: 0, exclusive: true }, () =>
    say({ type: 'serving', port: (server.address() as AddressInfo).port }),
  )
})
// Without its runner the proxy for secrets would have no secrets, so it exits.
process.on('disconnect', () => process.exit(0))
