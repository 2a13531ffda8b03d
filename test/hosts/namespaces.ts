// Simulated hosts for tests, on one machine. Each host has process, mount and network namespaces of its own. A bridge in a further
// network namespace connects the hosts. Several tests may run at the same time, and no test can reach anything outside its own
// network.
//   await using network = await Network.open()
//   const server = await network.addHost('server')      // 198.51.100.1
//   const { out } = await server.run(['ip', 'address'])
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { purge } from '#src/cli/purge.ts'
import { identityOf, isAlive, type ProcessIdentity, signalProcess, waitUntilGone } from '#src/kit/process-identity.ts'
import { dataDirectoryAt, findDataDirectory } from '#src/up/data-directory.ts'
import { cgroupTree, instanceCgroups, thaw } from '#src/up/traces.ts'

/** The network of the tests. RFC 5737 reserves it for documentation, so no machine has such an address. */
const addressOf = (number: number) => `198.51.100.${number}`

const prefix = 'alcove-hosts-'
const bridge = 'hosts'
const patienceMs = 120_000
const mostOutput = 256 * 1024

type Options = { env?: Record<string, string>; input?: string; timeoutMs?: number }

/** `keepsInput`: standard input stays open until the caller closes it. Default: standard input is empty. */
type StartOptions = Pick<Options, 'env'> & { keepsInput?: boolean }

const tableOf = (address: string) => `test_block_${address.replaceAll('.', '_')}`

export type Ran = { code: number | null; out: string; err: string }

/** A program that runs on a host. */
export type Started = {
  child: ChildProcess
  /** Returns the output of the program until now, from standard output and standard error. */
  text: () => string
  /** Waits until the output contains this text. Rejects if the program ends earlier. */
  until: (text: string, timeoutMs?: number) => Promise<void>
  /** Resolves with the exit code. */
  ended: Promise<number | null>
}

/** The namespaces of a process, as arguments of `nsenter`. */
const inside = ({ pid }: ProcessIdentity, ...kinds: string[]) => ['--target', String(pid), ...kinds, '--']

const sh = (command: string, ...args: string[]) =>
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'], encoding: 'utf8' })

/** Returns the id of the only child of a process. The only child of `unshare --fork` is the first process of the new namespaces. */
const childOf = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0])

const until = async (what: string, isSo: () => boolean, timeoutMs = 10_000): Promise<void> => {
  const end = Date.now() + timeoutMs
  while (!isSo()) {
    assert.ok(Date.now() < end, `not within ${timeoutMs} ms: ${what}`)
    await pause(10)
  }
}

/**
 * Kills the processes of the simulated network in `directory`, and purges the network's hosts. Returns a line for each thing that
 * could not be removed.
 */
const clear = async (directory: string): Promise<string[]> => {
  const noted = join(directory, 'processes')
  for (const name of existsSync(noted) ? readdirSync(noted) : []) {
    const identity = JSON.parse(readFileSync(join(noted, name), 'utf8')) as ProcessIdentity
    signalProcess(identity, 'SIGKILL')
    await waitUntilGone(identity, 10_000)
  }
  const hosts = join(directory, 'hosts')
  const left: string[] = []
  for (const name of existsSync(hosts) ? readdirSync(hosts) : []) {
    const data = findDataDirectory(join(hosts, name, 'data'))
    if (data !== undefined) left.push(...(await purge(data)))
  }
  if (left.length === 0) rmSync(directory, { recursive: true, force: true })
  return left
}

/** Removes the networks that killed test runs have left. */
const clearFormer = async (): Promise<void> => {
  for (const name of readdirSync(tmpdir())) {
    const directory = join(tmpdir(), name)
    const owner = join(directory, 'owner')
    if (!name.startsWith(prefix) || !existsSync(owner)) continue
    if (!isAlive(JSON.parse(readFileSync(owner, 'utf8')) as ProcessIdentity)) await clear(directory)
  }
}

export class Network implements AsyncDisposable {
  /**
   * The directory with the data of all hosts. Every host can read the data of all hosts, because only /run is separate for each
   * host.
   */
  readonly directory: string
  readonly hosts: Host[] = []
  readonly #switch: ProcessIdentity

  private constructor(directory: string) {
    this.directory = directory
    mkdirSync(join(directory, 'processes'))
    mkdirSync(join(directory, 'hosts'))
    const own = spawn('unshare', ['--net', 'sleep', 'infinity'], { stdio: 'ignore' })
    this.#switch = this.note('switch', own.pid ?? 0)
  }

  /** Makes a network without hosts. */
  static async open(): Promise<Network> {
    await clearFormer()
    const directory = mkdtempSync(join(tmpdir(), prefix))
    writeFileSync(join(directory, 'owner'), JSON.stringify(identityOf(process.pid)))
    const network = new Network(directory)
    try {
      const path = `/proc/${network.#switch.pid}/ns/net`
      await until('the switch has a network of its own', () => readlinkSync(path) !== readlinkSync('/proc/self/ns/net'))
      network.onSwitch('ip', 'link', 'add', bridge, 'type', 'bridge')
      network.onSwitch('ip', 'link', 'set', bridge, 'up')
    } catch (error) {
      await clear(directory)
      throw error
    }
    return network
  }

  /** Runs a command in the network namespace of the bridge. */
  onSwitch(...command: string[]): void {
    sh('nsenter', ...inside(this.#switch, '--net'), ...command)
  }

  /** Stores the identity of a process, so that a later test can end the process if this test is killed. */
  note(name: string, pid: number): ProcessIdentity {
    const identity = identityOf(pid)
    writeFileSync(join(this.directory, 'processes', name), JSON.stringify(identity))
    return identity
  }

  /** Adds a host and switches it on. */
  async addHost(name: string): Promise<Host> {
    const host = new Host(this, name, this.hosts.length + 1)
    this.hosts.push(host)
    await host.boot()
    return host
  }

  /** Ends all hosts and removes their files. Throws if something could not be removed. */
  async [Symbol.asyncDispose]() {
    assert.deepEqual(await clear(this.directory), [], 'left on this machine')
  }
}

export class Host {
  readonly name: string
  readonly address: string
  /** The data directory of this host. It survives the method `kill`, as a disk survives a power failure. */
  readonly data: string
  readonly #network: Network
  readonly #port: string
  /** The MAC address of the host. It stays the same at each boot, as on a real machine, because other hosts cache it. */
  readonly #cardAddress: string
  #first: ProcessIdentity = { pid: 0, startTime: '' }
  #boots = 0

  constructor(network: Network, name: string, number: number) {
    this.#network = network
    this.name = name
    this.address = addressOf(number)
    this.#port = `host${number}`
    this.#cardAddress = `02:00:00:00:00:${number.toString(16).padStart(2, '0')}`
    this.data = join(network.directory, 'hosts', name, 'data')
    mkdirSync(this.data, { recursive: true })
  }

  get isOn(): boolean {
    return isAlive(this.#first)
  }

  /** Switches the host on. */
  async boot(): Promise<void> {
    this.#boots += 1
    const own = join(this.#network.directory, 'hosts', this.name)
    const [scratch, ready] = [join(own, 'scratch'), join(own, `ready-${this.#boots}`)]
    mkdirSync(scratch, { recursive: true })
    const init = join(import.meta.dirname, 'host-init.sh')
    const namespaces = ['--mount', '--net', '--pid', '--propagation', 'private', '--mount-proc', '--fork']
    // Some versions of unshare always print a warning, so its output is shown only if the start fails.
    const child = spawn('unshare', [...namespaces, 'sh', init, scratch, ready], { stdio: ['ignore', 'ignore', 'pipe'] })
    let complaints = ''
    child.stderr.on('data', (chunk: Buffer) => {
      complaints += chunk.toString()
    })
    await until(`${this.name} is on`, () => existsSync(ready)).catch((error: Error) => {
      throw new Error(`${error.message}: ${complaints}`, { cause: error })
    })
    this.#first = this.#network.note(this.name, childOf(child.pid ?? 0))
    const pid = String(this.#first.pid)
    const card = ['name', 'eth0', 'address', this.#cardAddress, 'netns', pid]
    this.#network.onSwitch('ip', 'link', 'add', this.#port, 'type', 'veth', 'peer', ...card)
    this.#network.onSwitch('ip', 'link', 'set', this.#port, 'master', bridge, 'up')
    this.#onNetwork('ip', 'address', 'add', `${this.address}/24`, 'dev', 'eth0')
    this.#onNetwork('ip', 'link', 'set', 'eth0', 'up')
  }

  /**
   * Kills all processes of the host at once, as a power failure does. The data directory stays. The method `boot` switches the host
   * on again.
   */
  async kill(): Promise<void> {
    signalProcess(this.#first, 'SIGKILL')
    // The processes of a paused sandbox are frozen. With cgroup v1, a killed but frozen process ends only after a thaw.
    for (let left = 30; isAlive(this.#first) && left > 0; left -= 1) {
      for (const cgroup of instanceCgroups(dataDirectoryAt(this.data)).flatMap(cgroupTree)) thaw(cgroup)
      await waitUntilGone(this.#first, 1000)
    }
    assert.ok(!isAlive(this.#first), `${this.name} is still on`)
    try {
      this.#network.onSwitch('ip', 'link', 'delete', this.#port)
    } catch {
      // The kernel may already have deleted this network interface, together with the network namespace of the killed host.
    }
  }

  /** Disconnects the host from the network. */
  cut(): void {
    this.#network.onSwitch('ip', 'link', 'set', this.#port, 'down')
  }

  /** Reconnects a host that the method `cut` has disconnected. */
  mend(): void {
    this.#network.onSwitch('ip', 'link', 'set', this.#port, 'up')
  }

  /** Drops all packets between this host and `address`, as if the network between two machines were broken. */
  block(address: string): void {
    const table = tableOf(address)
    this.#onNetwork('nft', 'add', 'table', 'inet', table)
    for (const [hook, side] of [
      ['input', 'saddr'],
      ['output', 'daddr'],
    ] as const) {
      const chain = `{ type filter hook ${hook} priority -300 ; }`
      this.#onNetwork('nft', 'add', 'chain', 'inet', table, hook, chain)
      this.#onNetwork('nft', 'add', 'rule', 'inet', table, hook, 'ip', side, address, 'drop')
    }
  }

  /** Ends the effect of the method `block` for `address`. */
  unblock(address: string): void {
    this.#onNetwork('nft', 'delete', 'table', 'inet', tableOf(address))
  }

  #onNetwork(...command: string[]): void {
    sh('nsenter', ...inside(this.#first, '--net'), ...command)
  }

  /** Starts a program on this host. */
  start(command: readonly string[], { env = {}, keepsInput = false }: StartOptions = {}): Started {
    const child = this.#spawn(command, env)
    let text = ''
    let onChange = () => {}
    const read = (chunk: Buffer) => {
      text = (text + chunk.toString()).slice(-mostOutput)
      onChange()
    }
    child.stdin.on('error', () => {})
    if (!keepsInput) child.stdin.end()
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    const ended = once(child, 'close').then(([code]) => {
      onChange()
      return code as number | null
    })
    const waitFor = async (wanted: string, timeoutMs = patienceMs) => {
      const end = Date.now() + timeoutMs
      while (!text.includes(wanted)) {
        const hasEnded = child.exitCode !== null || child.signalCode !== null
        assert.ok(!hasEnded && Date.now() < end, `${this.name} did not say ${JSON.stringify(wanted)}:\n${text}`)
        const changed = new Promise<void>((resolve) => {
          onChange = resolve
        })
        await Promise.race([changed, pause(1000, undefined, { ref: false })])
      }
    }
    return { child, text: () => text, until: waitFor, ended }
  }

  /** Runs a command on this host and waits for its end. */
  async run(command: readonly string[], { env = {}, input = '', timeoutMs = patienceMs }: Options = {}): Promise<Ran> {
    const child = this.#spawn(command, env, timeoutMs)
    const [out, err]: [Buffer[], Buffer[]] = [[], []]
    child.stdout.on('data', (chunk: Buffer) => out.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => err.push(chunk))
    child.stdin.on('error', () => {})
    child.stdin.end(input)
    const [code] = await once(child, 'close')
    const textOf = (chunks: Buffer[]) => Buffer.concat(chunks).toString()
    return { code, out: textOf(out), err: textOf(err) }
  }

  #spawn(command: readonly string[], env: Record<string, string>, timeout?: number) {
    return spawn('nsenter', [...inside(this.#first, '--net', '--mount', '--pid'), ...command], {
      stdio: 'pipe',
      cwd: '/',
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env },
      ...(timeout === undefined ? {} : { timeout, killSignal: 'SIGKILL' }),
    })
  }
}
