// The other control processes of this database, and what they are told of what was done here.
//
// Mostly there is none, and then nothing is sent: PostgreSQL lets transactions with a NOTIFY commit one after the other, so one
// in every write would make each wait for the disk of all before it. What is told is told after the commit, and a process
// that dies in between tells nothing: whoever is told must also look by itself.
import { randomUUID } from 'node:crypto'
import Type from 'typebox'
import Value from 'typebox/value'
import type { Logger } from '#src/kit/log.ts'
import type { Database } from './database.ts'

const Said = Type.Object({ from: Type.String(), news: Type.Array(Type.Unknown()) })

/** How often a process says that it is there, and for how long it counts as there after that. Milliseconds. */
const helloEvery = 10_000
const thereFor = 35_000

/** Most news that wait to be sent; more is dropped. */
const mostUntold = 10_000
/** PostgreSQL takes less than 8000 bytes in one NOTIFY. */
const mostBytes = 7_500

type PeersParts<News> = {
  database: Pick<Database, 'sql' | 'listen'>
  channel: string
  log: Logger
  /** What another process has told; of no shape that was checked. */
  onNews: (news: News) => void
}

export class Peers<News extends object> {
  readonly #parts: PeersParts<News>
  readonly #self = randomUUID()
  /** When each was heard last. */
  readonly #heardAt = new Map<string, number>()
  #untold: string[] = []
  #isTelling = false
  #timer: NodeJS.Timeout | undefined

  private constructor(parts: PeersParts<News>) {
    this.#parts = parts
  }

  /** Settles when others are heard and have been told of us. For a while it is taken for sure that there are some. */
  static async open<News extends object>(parts: PeersParts<News>): Promise<Peers<News>> {
    const peers = new Peers(parts)
    // Who has just begun, or may have missed something, does not know that there is nobody.
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

  /** Does not wait. Where there is nobody else, or nobody can be reached, nothing is sent. */
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

  /** Sends all news that waits. News that comes meanwhile is sent next, together and in order. */
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
    // A new process is to know of us at once, too.
    if (isNew) void this.#send([[]])
    for (const news of said.news) this.#parts.onNews(news as News)
  }
}

const readSaid = (text: string): Type.Static<typeof Said> | undefined => {
  try {
    const said: unknown = JSON.parse(text)
    return Value.Check(Said, said) ? said : undefined
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
