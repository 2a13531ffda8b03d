// Sends news (short JSON messages) of this control process to the other control processes of the same database.
//
// News is not sent inside a transaction: PostgreSQL commits transactions with a NOTIFY one after the other, each waiting for the
// disk. A process may die between its commit and its news, so receivers must also check the tables.
import { randomUUID } from 'node:crypto'
import Type from 'typebox'
import Value from 'typebox/value'
import type { Logger } from '#src/kit/log.ts'
import type { Database } from './database.ts'

const PeerMessage = Type.Object({ from: Type.String(), news: Type.Array(Type.Unknown()) })

/** Milliseconds between two hello messages of a control process. */
const helloEvery = 10_000
/** A control process is assumed to exist for this many milliseconds after its last message. */
const thereFor = 35_000

/** Maximum number of news items that wait to be sent to the other control processes. Further items are dropped. */
const mostUntold = 10_000
/** Maximum number of bytes in one NOTIFY. PostgreSQL accepts less than 8000. */
const mostBytes = 7_500

type PeersParts<News> = {
  database: Pick<Database, 'sql' | 'listen'>
  channel: string
  log: Logger
  /** Called with news that another control process has sent. The content is not validated. */
  onNews: (news: News) => void
}

export class Peers<News extends object> {
  readonly #parts: PeersParts<News>
  readonly #self = randomUUID()
  /** For every other control process: when its last message arrived in this process. */
  readonly #heardAt = new Map<string, number>()
  #untold: string[] = []
  #isTelling = false
  #timer: NodeJS.Timeout | undefined

  private constructor(parts: PeersParts<News>) {
    this.#parts = parts
  }

  /** Resolves when this process listens to the other control processes and has sent them a hello message. */
  static async open<News extends object>(parts: PeersParts<News>): Promise<Peers<News>> {
    const peers = new Peers(parts)
    // After a start or a lost connection, this process does not know whether other control processes exist. It assumes that one
    // exists, so that `tell` does not drop its news. The hello message makes other control processes answer.
    const begin = () => {
      peers.#heardAt.set('somebody', performance.now())
      return hello()
    }
    const hello = () => peers.#send([[]])
    await parts.database.listen(parts.channel, (text) => peers.#hear(text), begin)
    await begin()
    peers.#timer = setInterval(hello, helloEvery).unref()
    return peers
  }

  /**
   * Sends news to the other control processes, without waiting. Nothing is sent if there is no other process, or if the database is
   * unreachable.
   */
  tell(news: News): void {
    if (!this.#hasCompany() || this.#untold.length >= mostUntold) return
    this.#untold.push(JSON.stringify(news))
    if (!this.#isTelling) void this.#tellAll()
  }

  close(): void {
    clearInterval(this.#timer)
    this.#heardAt.clear()
  }

  #hasCompany(): boolean {
    const since = performance.now() - thereFor
    for (const [peer, at] of this.#heardAt) if (at < since) this.#heardAt.delete(peer)
    return this.#heardAt.size > 0
  }

  async #tellAll(): Promise<void> {
    this.#isTelling = true
    while (this.#untold.length > 0) await this.#send(inBatches(this.#untold.splice(0)))
    this.#isTelling = false
  }

  async #send(batches: string[][]): Promise<void> {
    const { database, channel, log } = this.#parts
    const payloads = batches.map((batch) => `{"from":"${this.#self}","news":[${batch}]}`)
    const { sql } = database
    await sql`
      select pg_notify(${channel}, payload) from unnest(${payloads}::text[]) with ordinality as said (payload, place)
      order by place`.catch((error) => log.debug({ err: error }, 'other control processes could not be told'))
  }

  #hear(text: string): void {
    const said = readSaid(text)
    if (said === undefined || said.from === this.#self) return
    const isNew = !this.#heardAt.has(said.from)
    this.#heardAt.set(said.from, performance.now())
    // The sender is new: answer at once, so that the sender knows this process.
    if (isNew) void this.#send([[]])
    for (const news of said.news) this.#parts.onNews(news as News)
  }
}

const readSaid = (text: string): Type.Static<typeof PeerMessage> | undefined => {
  try {
    const said: unknown = JSON.parse(text)
    return Value.Check(PeerMessage, said) ? said : undefined
  } catch {
    return undefined
  }
}

const inBatches = (texts: readonly string[]): string[][] => {
  const batches: string[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const text of texts) {
    bytes += Buffer.byteLength(text) + 1
    if (bytes > mostBytes - 100) {
      batches.push([])
      bytes = Buffer.byteLength(text)
    }
    batches.at(-1)?.push(text)
  }
  return batches
}
