// Reports the sandboxes of this host to a gate: first all of them, then each change.
import type { Socket } from 'node:net'
import { jsonFrameOf, sendFrame } from '#src/kit/length-frames.ts'
import type { Logger } from '#src/kit/log.ts'
import type { GateNews, SandboxHere } from '#src/wire/gate-link.ts'
import type { ImageConfig } from '#src/wire/runner-link.ts'
import type { HeldSandbox, Host } from '../host.ts'

export type WatchedHost = Pick<Host, 'list' | 'get' | 'imageOf' | 'onChange'>

export type WatchParts = {
  host: WatchedHost
  /** Returns the part of an image's configuration that applies to its sandboxes. */
  configOf: (image: string) => ImageConfig | undefined
  log: Logger
}

/** Milliseconds until the runner repeats a report that failed because of an unreadable base image. */
const againMs = 1000

const hereOf = async ({ host, configOf }: WatchParts, held: HeldSandbox): Promise<SandboxHere> => {
  const { id, status, socketPath, assignment } = held
  const { sandboxId, organizationId, regionId, generation, snapshot, user, env, language, memoryGiB } = assignment
  const { otelEndpoint, unsetEnv } = assignment
  const image = status === 'started' || status === 'paused' ? await host.imageOf(id) : undefined
  const config = image === undefined ? undefined : configOf(image)
  return {
    id,
    status,
    socketPath,
    assignment: {
      ...{ sandboxId, organizationId, regionId, generation, snapshot, user, env, language, memoryGiB },
      ...(otelEndpoint === undefined ? {} : { otelEndpoint }),
      ...(unsetEnv === undefined ? {} : { unsetEnv }),
    },
    ...(config === undefined ? {} : { config: { env: config.env, workdir: config.workdir } }),
  }
}

/** Reports this host's sandboxes to a gate until the gate closes the connection. */
export const tellGate = async (parts: WatchParts, socket: Socket): Promise<void> => {
  const { host, log } = parts
  const changed = new Set(host.list().map(({ id }) => id))
  let wake = () => {}
  const note = (sandboxId: string) => {
    changed.add(sandboxId)
    wake()
  }
  const ignore = host.onChange(note)
  socket.once('close', () => wake())
  let isWhole = false
  const tell = (news: GateNews) => sendFrame(socket, jsonFrameOf(news))
  /**
   * Returns the message about one sandbox. Undefined if its base image cannot be read now. The other sandboxes are still reported.
   */
  const newsOf = async (sandboxId: string): Promise<GateNews | undefined> => {
    const held = host.get(sandboxId)
    try {
      return held ? { type: 'here', sandbox: await hereOf(parts, held) } : { type: 'gone', sandboxId }
    } catch (err) {
      log.warn({ err, sandboxId }, 'the gate cannot be told of a sandbox now')
      setTimeout(note, againMs, sandboxId).unref()
      return undefined
    }
  }
  try {
    while (!socket.destroyed) {
      for (const sandboxId of changed) {
        changed.delete(sandboxId)
        const news = await newsOf(sandboxId)
        if (news !== undefined) await tell(news)
      }
      if (!isWhole) await tell({ type: 'whole' })
      isWhole = true
      if (changed.size > 0 || socket.destroyed) continue
      await new Promise<void>((resolve) => {
        wake = resolve
      })
      // Lets the runner send its report to control before the next messages to the gate, because callers of the API wait for
      // control.
      await new Promise(setImmediate)
    }
  } finally {
    ignore()
  }
}
