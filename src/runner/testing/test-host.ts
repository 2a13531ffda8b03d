// For tests: a real host with its own instance name, directory, pool and networks, which are removed at the end.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { agentSocketsOf, runDirectoryOf } from '#src/kit/instance.ts'
import { silentLog } from '#src/kit/log.ts'
import { GiB } from '#src/runner/cgroup/sandbox-limits.ts'
import type { HostParts } from '#src/runner/machine/open-machine.ts'
import { placesOf, unmountMemory } from '#src/runner/machine/places.ts'
import { agentAt } from '#src/toolbox/agent/agent.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import { openStore } from '../archive/store.ts'
import { cgroupAt, listCgroups } from '../cgroup/cgroup.ts'
import { ownProcsFile, readLayout } from '../cgroup/layout.ts'
import type { Host } from '../host.ts'
import type { ImageStore } from '../images/store.ts'
import { serveCommands } from '../launch.ts'
import { openHost } from '../machine-host.ts'
import { type NetworkPool, openNetworkPool } from '../network/pool.ts'
import { removeNetwork } from '../network/remove.ts'
import { canMapOwners } from '../overlay/owners.ts'
import { unmountPool } from '../overlay/pool.ts'
import { cutPower } from './power-cut.ts'
import { makeSmallImage } from './small-image.ts'

const code = resolve(import.meta.dirname, '../../..')

/** Reason for skipping a test where all sandboxes share one range of user ids (`TestHost.mapsOwners`). */
export const cannotMapOwners = 'needs Linux 5.19, and file systems whose owners can be mapped'

const built = new Set<string>()

/** Builds a program once per process. The lock makes other test processes wait meanwhile. */
const build = (directory: string, program: string) => {
  const path = join(code, directory, 'build', program)
  if (!built.has(path)) {
    mkdirSync(dirname(path), { recursive: true })
    const lock = join(dirname(path), '.lock')
    execFileSync('flock', [lock, 'make', '-s', '-C', join(code, directory), `build/${program}`], { stdio: 'pipe' })
    built.add(path)
  }
  return path
}

export const builtLauncher = () => build('native', 'launch')

type CommandResult = { exitCode: number; output: string }

export type OpenedHost = { host: Host; network: NetworkPool; commands: Disposable }

export type TestHostParts = Pick<HostParts, 'poolBytes' | 'mapsOwners' | 'volumesDirectory'> & {
  brought?: Pick<ImageStore, 'rootfsOf'> &
    Partial<Pick<ImageStore, 'configOf' | 'largeIdsOf' | 'newest' | 'identityOf' | 'withBase'>>
  /** Directory of the archive store. Default: a directory in the test host's directory. */
  archives?: string
}

/** Makes a real host (`Host`) with all its files in `directory`, and adopts the sandboxes that it finds there. */
export const openTestHostIn = async (
  instance: string,
  directory: string,
  { poolBytes = 4 * GiB, brought, archives = join(directory, 'archive'), ...parts }: TestHostParts = {},
): Promise<OpenedHost> => {
  const log = silentLog()
  const launcher = builtLauncher()
  const commands = serveCommands(launcher, ownProcsFile(readLayout()))
  const agentProgram = build('agent', 'alcove-agent')
  const network = await openNetworkPool({ instance, log, spare: 1 })
  const host = await openHost({
    instance,
    directory: join(directory, 'runner'),
    launcher,
    agentProgram,
    agentAt,
    network,
    images: {
      ...brought,
      rootfsOf: (image) => brought?.rootfsOf(image) ?? [join(directory, image)].find((path) => existsSync(path)),
      configOf: (image) => brought?.configOf?.(image),
      largeIdsOf: (image) => brought?.largeIdsOf?.(image) ?? [],
    },
    archiveStore: openStore({ kind: 'directory', path: archives }),
    log,
    resolvers: ['192.0.2.53'],
    poolBytes,
    ...parts,
  })
  return { host, network, commands }
}

export class TestHost {
  readonly instance = randomBytes(3).toString('hex')
  readonly directory = mkdtempSync(join(tmpdir(), 'alcove-host-'))
  #opened: OpenedHost | undefined
  readonly #parts: TestHostParts

  constructor(parts: TestHostParts = {}) {
    this.#parts = parts
  }

  static async start(parts: TestHostParts = {}): Promise<TestHost> {
    const test = new TestHost(parts)
    try {
      makeSmallImage(join(test.directory, 'small'))
      await test.open()
      return test
    } catch (error) {
      await test[Symbol.asyncDispose]()
      throw error
    }
  }

  get host(): Host {
    assert.ok(this.#opened, 'the host is open')
    return this.#opened.host
  }

  async open() {
    this.#opened = await openTestHostIn(this.instance, this.directory, this.#parts)
  }

  /** Makes this object use the host `opened`, in the same directory. The caller must first close the earlier host. */
  use(opened: OpenedHost) {
    this.#opened = opened
  }

  /** Closes the runner as at its normal end. The sandboxes keep running. */
  async close() {
    await this.#opened?.host.close()
    await this.#opened?.network.close()
    this.#opened?.commands[Symbol.dispose]()
    this.#opened = undefined
  }

  /** Makes the state after a power cut and a restart: no sandbox runs, and disks have only what the kernel had written. */
  async cutPower() {
    await this.close()
    await cutPower(join(this.directory, 'runner'), () => this.#killSandboxes())
    await this.open()
  }

  assignment(changes: Partial<Assignment> = {}): Assignment {
    return {
      sandboxId: randomUUID(),
      organizationId: 'o',
      regionId: 'r',
      name: 'box',
      generation: 1,
      target: 'started',
      signal: 'SIGTERM',
      image: 'small',
      snapshot: 'small',
      user: 'daytona',
      env: {},
      language: 'python',
      cpu: 1,
      memoryGiB: 0.25,
      diskGiB: 1,
      // Lets the sandbox reach only an address that no machine has (RFC 5737). `blockAll: true` would be slower, because each test
      // process would start the resolver.
      network: { blockAll: false, allowList: ['198.51.100.1/32'] },
      ...changes,
    }
  }

  async started(changes: Partial<Assignment> = {}): Promise<Assignment> {
    const assignment = this.assignment(changes)
    await this.host.start(assignment)
    return assignment
  }

  /** Runs a line of shell in a sandbox, and returns the result. */
  async run(sandboxId: string, line: string, user = 'root'): Promise<CommandResult> {
    const socketPath = this.host.get(sandboxId)?.socketPath
    assert.ok(socketPath, 'the sandbox is held')
    const command = await agentAt(socketPath).exec({
      argv: ['/bin/sh', '-c', line],
      env: { PATH: '/bin' },
      cwd: '/',
      user,
      mergeOutput: true,
    })
    let output = ''
    for await (const { data } of command) output += data
    return { exitCode: (await command.exit).exitCode, output: output.trim() }
  }

  /** Returns the process id, on the host, of a sandbox's PID 1. */
  pidOf(sandboxId: string): number {
    const run = JSON.parse(readFileSync(join(this.directory, 'runner/sandboxes', sandboxId, 'run.json'), 'utf8'))
    return run.pid
  }

  cgroupOf(sandboxId: string) {
    return cgroupAt(readLayout(), `/alcove-${this.instance}/${sandboxId}`)
  }

  /** Whether this machine can map the owners of files, even if the host was opened with `mapsOwners: false`. */
  mapsOwners(): Promise<boolean> {
    const runner = join(this.directory, 'runner')
    const { mountPoints } = placesOf(this.instance, runner)
    const directories = [runner, join(runner, 'pool')]
    return canMapOwners({ launcher: builtLauncher(), log: silentLog(), directories, mountPoints })
  }

  /** Lists the files, cgroups and mounts on this machine that have the sandbox's id in their path. */
  async tracesOf(sandboxId: string): Promise<string[]> {
    const below = (path: string) => (existsSync(path) ? readdirSync(path).map((name) => join(path, name)) : [])
    const run = runDirectoryOf(this.instance)
    const paths = [
      join(this.directory, 'runner/sandboxes'),
      join(this.directory, 'runner/pool/disks'),
      agentSocketsOf(this.instance),
      join(run, 'crun'),
      join(run, 'shown'),
    ].flatMap(below)
    const cgroups = await listCgroups(readLayout(), `/alcove-${this.instance}`)
    const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
    return [...paths, ...cgroups, ...mounts].filter((trace) => trace.includes(sandboxId))
  }

  async #killSandboxes() {
    const all = `/alcove-${this.instance}`
    for (const id of await listCgroups(readLayout(), all)) await cgroupAt(readLayout(), `${all}/${id}`).kill()
  }

  async [Symbol.asyncDispose]() {
    const ids = this.#opened?.host.list().map(({ id }) => id) ?? []
    for (const id of ids) await this.host.destroy(id)
    await this.close()
    await this.#killSandboxes()
    await cgroupAt(readLayout(), `/alcove-${this.instance}`).remove()
    await removeNetwork(this.instance)
    await unmountPool(join(this.directory, 'runner'))
    await unmountMemory(placesOf(this.instance, join(this.directory, 'runner')))
    rmSync(runDirectoryOf(this.instance), { recursive: true, force: true })
    rmSync(agentSocketsOf(this.instance), { recursive: true, force: true })
    rmSync(this.directory, { recursive: true, force: true })
  }
}
