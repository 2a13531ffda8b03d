// The sandbox in which one stage of a definition is built, with limits like all sandboxes. A definition's programs run only there.
import { createHash } from 'node:crypto'
import type { Agent, Files } from '#src/toolbox/agent/agent.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import type { Host } from '../host.ts'
import { ImageFailed } from '../images/image-failed.ts'

export type BuildHost = Pick<
  Host,
  'list' | 'get' | 'start' | 'stop' | 'destroy' | 'snapshot' | 'removeTemplate' | 'measure'
>
export type BuildAgent = Pick<Agent, 'exec' | 'files'>

const prefix = 'build-'
/** Whether an image is built in the sandbox with this id. No sandbox of a user has such an id. */
export const isBuildId = (sandboxId: string): boolean => sandboxId.startsWith(prefix)

const size = { cpu: 2, memoryGiB: 2 }

const withNetwork = { blockAll: false, allowList: null }
const withoutNetwork = { blockAll: true, allowList: null }

type WorkplaceParts = {
  host: BuildHost
  agentAt: (socketPath: string) => BuildAgent
  /** The image, or the template of another stage of the Dockerfile, from which the sandbox's disk is made. */
  from: string
  /** The id of the build's sandbox is a hash of this key, so no two build sandboxes at a time may have the same key. */
  key: string
  maxGiB: number
}

export class Workplace {
  readonly #host: BuildHost
  readonly #agentAt: WorkplaceParts['agentAt']
  #assignment: Assignment

  constructor({ host, agentAt, from, key, maxGiB }: WorkplaceParts) {
    this.#host = host
    this.#agentAt = agentAt
    this.#assignment = {
      sandboxId: `${prefix}${createHash('sha256').update(key).digest('hex').slice(0, 24)}`,
      ...{ organizationId: '', regionId: '', name: 'build', generation: 1, target: 'started', signal: 'SIGKILL' },
      ...{ image: from, snapshot: from, user: 'root', env: {}, language: 'python', ...size, diskGiB: maxGiB },
      ...{ network: withNetwork, isNew: true, isBuild: true },
    }
  }

  get id(): string {
    return this.#assignment.sandboxId
  }

  async start(): Promise<void> {
    await this.#host.destroy(this.id)
    await this.#host.start(this.#assignment)
  }

  /** Returns the agent of the sandbox. Throws if the sandbox has ended. */
  agent(): BuildAgent {
    const held = this.#host.get(this.id)
    if (held?.status !== 'started') throw new ImageFailed('build-failed', 'the sandbox of the build has ended')
    return this.#agentAt(held.socketPath)
  }

  files(): Files {
    return this.agent().files('0')
  }

  async setOffline(isOffline: boolean): Promise<void> {
    const { isNew: _, ...assignment } = this.#assignment
    const network = isOffline ? withoutNetwork : withNetwork
    this.#assignment = { ...assignment, network, generation: assignment.generation + 1 }
    await this.#host.start(this.#assignment)
  }

  /** Returns the bytes in use on the sandbox's disk, or 0 if that is unknown. */
  async diskUsed(): Promise<number> {
    return (await this.#host.measure(this.id))?.diskUsed ?? 0
  }

  /**
   * Makes a template of the sandbox's disk. `otherBase`: an image with the same files as the disk's base image; the template then
   * has this image as its base.
   */
  snapshot(template: string, otherBase?: string): Promise<void> {
    return this.#host.snapshot(this.id, template, otherBase)
  }

  stop(): Promise<void> {
    const generation = this.#assignment.generation + 1
    return this.#host.stop({ ...this.#assignment, generation, target: 'stopped' })
  }

  destroy(): Promise<void> {
    return this.#host.destroy(this.id)
  }
}
