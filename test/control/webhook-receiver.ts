// A receiver of webhooks, as users run one: a small HTTP server that verifies messages with the public package `standardwebhooks`.
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'

export type Received = {
  path: string
  headers: IncomingHttpHeaders
  /** The raw body of a message, for tests that check signatures. */
  text: string
  id: string
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts on what it expects to be there
  payload: any
}

export type Receiver = AsyncDisposable & {
  url: string
  received: Received[]
  /**
   * Sets the function that chooses the status of each later answer. If `choose` returns a promise, the answer waits for its result.
   */
  answer: (choose: (received: Received) => number | Promise<number>) => void
  /** Resolves when `count` messages have arrived. If `is` is given, only messages for which it returns true count. */
  until: (count: number, is?: (received: Received) => boolean) => Promise<Received[]>
}

const untilMilliseconds = 60_000

export const startReceiver = async (): Promise<Receiver> => {
  const received: Received[] = []
  const waiters = new Set<() => void>()
  let choose: (received: Received) => number | Promise<number> = () => 204
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const text = Buffer.concat(pieces).toString()
    const { url: path = '', headers } = request
    const one = { path, headers, text, id: String(headers['webhook-id']), payload: JSON.parse(text) }
    received.push(one)
    for (const wake of waiters) wake()
    const status = await choose(one)
    response.writeHead(status, status === 302 ? { location: '/elsewhere' } : {}).end()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    answer: (next) => {
      choose = next
    },
    until: async (count, is = () => true) => {
      const deadline = Date.now() + untilMilliseconds
      for (;;) {
        const found = received.filter(is)
        if (found.length >= count) return found
        if (Date.now() > deadline)
          throw new Error(`${found.length} of ${count} messages came: ${JSON.stringify(found)}`)
        await new Promise<void>((resolve) => {
          const wake = () => {
            clearTimeout(timer)
            waiters.delete(wake)
            resolve()
          }
          const timer = setTimeout(wake, 1000)
          waiters.add(wake)
        })
      }
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Verifies a message with `standardwebhooks`, the package that receivers use. Throws if the signature is wrong. */
export const verify = (secret: string, { text, headers }: Pick<Received, 'text' | 'headers'>): unknown =>
  new Webhook(secret).verify(text, headers as Record<string, string>)
