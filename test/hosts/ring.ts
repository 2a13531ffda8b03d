// The fault test of hosts: two control processes behind a load balancer, one database and three hosts, each on a machine of its
// own. Users work while machines lose power and connections are cut at random. At the end, no confirmed change may be lost, no
// sandbox may have run on two hosts at once, and no host may have files or processes of deleted sandboxes.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { dataDirectoryAt, newApiKey, newEncryptionKey } from '#src/up/data-directory.ts'
import { cgroupTree, instanceCgroups, pidsIn } from '#src/up/traces.ts'
import { randomFrom } from '#test/faults/random.ts'
import type { Outcome } from '#test/faults/ring.ts'
import { call, settingsOf, startControl, startDatabase, startHost } from './hosts.ts'
import type { Host, Network, Started } from './namespaces.ts'
import type { UsersOutcome } from './ring-users.ts'

const workers = 4
const watchEveryMs = 500
/** Maximum time in ms, after the last delete of a sandbox, for which the hosts may still have processes or files of sandboxes. */
const goneWithinMs = 120_000
/**
 * Minimum time in ms for which the network between a host and control is interrupted, so that control considers the host silent.
 */
const silentMs = 26_000

const idShape = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/

/** Returns the ids of the sandboxes that have processes on a host. */
const runningOn = ({ data }: Host): Set<string> =>
  new Set(
    instanceCgroups(dataDirectoryAt(data))
      .flatMap(cgroupTree)
      .flatMap((path) => {
        const id = idShape.exec(path)?.[0]
        return id !== undefined && pidsIn(path).length > 0 ? [id] : []
      }),
  )

class Machines {
  readonly front: Host
  readonly database: Host
  readonly controls: Host[]
  readonly hosts: Host[]
  readonly users: Host
  readonly key = newApiKey()
  readonly #encryptionKey = newEncryptionKey()
  #databaseUrl: Awaited<ReturnType<typeof startDatabase>> | undefined
  readonly #settings: Record<string, string>

  private constructor(machines: Host[], settings: Record<string, string>) {
    const [front, database, one, two, a, b, c, users] = machines
    this.front = front!
    this.database = database!
    this.controls = [one!, two!]
    this.hosts = [a!, b!, c!]
    this.users = users!
    this.#settings = settings
  }

  static async open(network: Network): Promise<Machines> {
    const machines: Host[] = []
    for (const name of ['front', 'database', 'control1', 'control2', 'a', 'b', 'c', 'users']) {
      machines.push(await network.addHost(name))
    }
    const all = new Machines(machines, await settingsOf(network))
    try {
      await all.#start()
      return all
    } catch (error) {
      // Stop PostgreSQL, which would keep the test's process running. The programs on the simulated hosts end when the network is
      // closed.
      await all[Symbol.asyncDispose]()
      throw error
    }
  }

  get url(): string {
    return `http://${this.front.address}:4600`
  }

  api(method: string, path: string, body?: unknown) {
    return call(this.users, this.key, method, `${this.url}/api${path}`, body)
  }

  async startControl(machine: Host): Promise<Started> {
    const options = {
      ...{ database: this.#databaseUrl!, encryptionKey: this.#encryptionKey, firstKey: this.key },
      proxyUrl: `http://${this.front.address}:4601`,
    }
    return await startControl(machine, options, { ALCOVE_PUBLIC_URL: this.url, ALCOVE_MOST_WARM: '0' })
  }

  startHost(host: Host, token?: string): Promise<Started> {
    return startHost({ host: this.front }, host, this.#settings, token === undefined ? {} : { token })
  }

  async #start(): Promise<void> {
    this.#databaseUrl = await startDatabase(this.database)
    for (const machine of this.controls) await this.startControl(machine)
    const to = (machines: Host[]) => machines.map(({ address }) => address).join(',')
    const controls = [4600, 4603].map((port) => `${port}=${to(this.controls)}`)
    const balancer = join(import.meta.dirname, 'balancer.ts')
    const command = [process.execPath, balancer, this.front.address, ...controls, `4601=${to(this.hosts)}`]
    await this.front.start(command).until('balances')
    for (const host of this.hosts) {
      const { status, body } = await this.api('POST', '/runners', { name: host.name })
      if (status !== 201) throw new Error(`a runner was not added: ${status} ${JSON.stringify(body)}`)
      await this.startHost(host, String(body['apiKey']))
    }
  }

  async [Symbol.asyncDispose]() {
    await this.#databaseUrl?.[Symbol.asyncDispose]()
  }
}

type Fault = {
  name: string
  strike: (
    machines: Machines,
    wait: (least: number, most: number) => Promise<void>,
    pick: <T>(all: readonly T[]) => T,
  ) => Promise<void>
}

const faults: readonly (readonly [weight: number, fault: Fault])[] = [
  [
    4,
    {
      name: 'a host loses power',
      strike: async (machines, wait, pick) => {
        const host = pick(machines.hosts)
        await host.kill()
        await wait(0, 25_000)
        await host.boot()
        await machines.startHost(host)
      },
    },
  ],
  [
    3,
    {
      name: 'a host is cut off',
      strike: async ({ hosts }, wait, pick) => {
        const host = pick(hosts)
        host.cut()
        await wait(1000, 40_000)
        host.mend()
      },
    },
  ],
  [
    2,
    {
      name: 'a host does not reach control',
      strike: async ({ hosts, front }, wait, pick) => {
        const host = pick(hosts)
        host.block(front.address)
        await wait(1000, 40_000)
        host.unblock(front.address)
      },
    },
  ],
  [
    2,
    {
      name: 'two gates do not reach each other',
      strike: async ({ hosts }, wait, pick) => {
        const host = pick(hosts)
        const other = pick(hosts.filter((each) => each !== host))
        host.block(other.address)
        await wait(1000, 20_000)
        host.unblock(other.address)
      },
    },
  ],
  [
    1,
    {
      name: 'a host is given up while it runs',
      strike: async (machines, wait, pick) => {
        const host = pick(machines.hosts)
        host.block(machines.front.address)
        await wait(silentMs, silentMs + 1000)
        await machines.api('POST', `/runners/${host.name}/lost`)
        await wait(0, 10_000)
        host.unblock(machines.front.address)
      },
    },
  ],
  [
    2,
    {
      name: 'a control loses power',
      strike: async (machines, wait, pick) => {
        const control = pick(machines.controls)
        await control.kill()
        await wait(0, 10_000)
        await control.boot()
        await machines.startControl(control)
      },
    },
  ],
  [
    1,
    {
      name: 'a control does not reach the database',
      strike: async ({ controls, database }, wait, pick) => {
        const control = pick(controls)
        control.block(database.address)
        await wait(1000, 15_000)
        control.unblock(database.address)
      },
    },
  ],
  [
    1,
    {
      name: 'the database is cut off',
      strike: async ({ database }, wait) => {
        database.cut()
        await wait(500, 8000)
        database.mend()
      },
    },
  ],
]

/** Checks at intervals whether a sandbox has processes on two hosts. */
const watchForTwins = (hosts: readonly Host[]) => {
  const twins = new Set<string>()
  const look = () => {
    const seen = new Map<string, string>()
    for (const host of hosts) {
      for (const id of runningOn(host)) {
        const other = seen.get(id)
        if (other !== undefined) twins.add(`DOUBLED ${id} ran on ${other} and on ${host.name}`)
        seen.set(id, host.name)
      }
    }
  }
  const timer = setInterval(look, watchEveryMs)
  return { twins, stop: () => clearInterval(timer) }
}

/**
 * Whether a sandbox's journal says only that this host has archived the sandbox. This journal stays a day after the sandbox has
 * moved to another host.
 */
const isNote = (directory: string): boolean => {
  try {
    return (JSON.parse(readFileSync(join(directory, 'spec.json'), 'utf8')) as { status: string }).status === 'archived'
  } catch {
    return false
  }
}

/** Returns a line for each sandbox whose files or processes are still on `host`. */
const leftOn = (host: Host): string[] => {
  const kept = join(host.data, 'runner/sandboxes')
  const files = readdirSync(kept).filter((name) => idShape.test(name) && !isNote(join(kept, name)))
  return [
    ...files.map((id) => `ORPHANED ${host.name}: files of ${id}`),
    ...[...runningOn(host)].map((id) => `ORPHANED ${host.name}: processes of ${id}`),
  ]
}

const errorsIn = ({ data, name }: Host, about: RegExp): string[] => {
  const logs = join(data, 'log')
  return readdirSync(logs).flatMap((file) =>
    readFileSync(join(logs, file), 'utf8')
      .split('\n')
      .filter((line) => about.test(line))
      .slice(-20)
      .map((line) => `${name} ${file}: ${line}`),
  )
}

type RingOptions = { seed: number; count: number; say: (line: string) => void }

/** Runs the fault test on a network that has no hosts yet. */
export const runHostsRing = async (network: Network, { seed, count, say }: RingOptions): Promise<Outcome> => {
  const random = randomFrom(seed)
  const kills = new Map<string, number>()
  const complaints: string[] = []
  await using machines = await Machines.open(network)
  const began = performance.now()
  const watch = watchForTwins(machines.hosts)
  const program = [process.execPath, join(import.meta.dirname, 'ring-users.ts')]
  const users = machines.users.start([...program, machines.url, machines.key, String(seed + 1), String(workers)], {
    keepsInput: true,
  })
  try {
    await users.until('users begin')
    const wait = async (least: number, most: number) => void (await sleep(least + random.below(most - least)))
    const pick = <T>(all: readonly T[]): T => all[random.below(all.length)]!
    for (let done = 0; done < count; done += 1) {
      await wait(500, 4000)
      const { name, strike } = random.pick(faults)
      say(`${done + 1} of ${count}: ${name}`)
      kills.set(name, (kills.get(name) ?? 0) + 1)
      await strike(machines, wait, pick)
    }
    users.child.stdin?.end()
    await users.until('\noutcome ', 600_000)
    await users.ended
  } finally {
    watch.stop()
  }
  const outcome = JSON.parse(/\noutcome (.*)/.exec(users.text())![1]!) as UsersOutcome
  complaints.push(...outcome.complaints, ...watch.twins)
  const end = Date.now() + goneWithinMs
  let left: string[] = []
  do {
    left = machines.hosts.flatMap(leftOn)
    if (left.length > 0) await sleep(500)
  } while (left.length > 0 && Date.now() < end)
  complaints.push(...left)
  const ids = [...new Set(complaints.flatMap((line) => line.match(new RegExp(idShape, 'g')) ?? []))]
  for (const host of machines.hosts) if (ids.length > 0) complaints.push(...errorsIn(host, new RegExp(ids.join('|'))))
  return {
    seed,
    kills,
    verbs: new Map(outcome.verbs),
    complaints,
    seconds: Math.round((performance.now() - began) / 1000),
  }
}
