// Handles the link of a runner: stores what the runner sends about itself, applies its reports, and sends assignments.

import Type from 'typebox'
import { Compile } from 'typebox/compile'
import type { RawData, WebSocket } from 'ws'
import { withKeptUrl } from '#src/control/hosts/join.ts'
import { refusalOfVersion } from '#src/control/hosts/version-rule.ts'
import { addBuildLog } from '#src/control/images/build-logs.ts'
import { MeterSamples } from '#src/control/meters/schemas.ts'
import { keepSamples } from '#src/control/meters/service.ts'
import { ImageStorageShape, knownOf } from '#src/control/runners/image-storage.ts'
import { silentBefore } from '#src/control/runners/leases.ts'
import { findDatabaseId, type RunnerIdentity, writeHeartbeat, writeHello } from '#src/control/runners/service.ts'
import { asAssignment } from '#src/control/sandboxes/record/sandbox.ts'
import { ArchiveReport, Cause, Reason, reportable } from '#src/control/sandboxes/record/schemas.ts'
import { addMishap } from '#src/control/sandboxes/record/timeline.ts'
import { findSandboxById } from '#src/control/sandboxes/service.ts'
import { applyProgress, applyReport } from '#src/control/sandboxes/upkeep/reports.ts'
import { applySaved, applyUnsaved } from '#src/control/sandboxes/upkeep/saving.ts'
import { reconcileSnapshots } from '#src/control/snapshots/of-runner.ts'
import { applyVolumeReport } from '#src/control/volumes/of-runner.ts'
import { belowPlace, span } from '#src/kit/telemetry/telemetry.ts'
import { Problem } from '#src/problems.ts'
import { type GateOfHost, localGateId } from '#src/wire/hosts.ts'
import {
  baseName,
  closedForVersion,
  type FromRunner,
  imageConfigBounds,
  type Report,
  type ToRunner,
  volumeDrivers,
} from '#src/wire/runner-link.ts'
import { placeOfGate } from '../runner-links.ts'
import type { RunningParts } from '../running.ts'
import { applyImageReport, keepProgress } from './image-reports.ts'

const amount = Type.Number({ minimum: 0, maximum: 1e9 })
const text = Type.String({ maxLength: 4096 })

/**
 * Maximum number of image names in a runner's `hello` message. A name has about 40 characters, so the message stays
 * below 4 MiB.
 */
const mostImages = 80_000

const word = Type.String({ maxLength: imageConfigBounds.wordCharacters })
const name = Type.String({ maxLength: imageConfigBounds.nameCharacters })
const path = Type.String({ maxLength: imageConfigBounds.pathCharacters })

const ImageConfig = Type.Object({
  entrypoint: Type.Array(word, { maxItems: imageConfigBounds.words }),
  env: Type.Record(name, word),
  user: name,
  workdir: path,
})

const FromRunnerShape = Type.Union([
  Type.Object({
    type: Type.Literal('hello'),
    address: text,
    images: Type.Array(text, { maxItems: mostImages }),
    capabilities: Type.Object({
      cpu: amount,
      memoryGiB: amount,
      diskGiB: amount,
      runtime: text,
      runtimeVersion: text,
      hardDiskLimit: Type.Boolean(),
      pause: Type.Optional(Type.Literal('memory')),
      fork: Type.Optional(Type.Literal('disk')),
      volumes: Type.Optional(Type.Enum([...volumeDrivers])),
      sharesStore: Type.Optional(Type.Literal(true)),
    }),
    version: text,
    gate: Type.Optional(
      Type.Object({
        id: Type.String({ minLength: 1, maxLength: 63 }),
        address: Type.Optional(Type.String({ maxLength: 261, pattern: '^\\S+:\\d{1,5}$' })),
        publicUrl: Type.Optional(Type.String({ maxLength: 2048, pattern: '^https?://[^\\s?#]+$' })),
      }),
    ),
  }),
  Type.Object({
    type: Type.Literal('report'),
    traceparent: Type.Optional(text),
    tracestate: Type.Optional(text),
    report: Type.Object({
      sandboxId: text,
      generation: Type.Integer({ minimum: 0 }),
      state: Type.Enum([...reportable]),
      errorReason: Type.Optional(Reason),
      recoverable: Type.Optional(Type.Boolean()),
      cause: Type.Optional(Cause),
      refused: Type.Optional(Reason),
      archive: Type.Optional(ArchiveReport),
    }),
  }),
  Type.Object({
    type: Type.Literal('image'),
    report: Type.Object({
      image: text,
      state: Type.Enum(['present', 'absent', 'error']),
      errorReason: Type.Optional(Reason),
      digest: Type.Optional(text),
      sizeBytes: Type.Optional(Type.Number({ minimum: 0, maximum: 2 ** 53 })),
      leastDiskBytes: Type.Optional(Type.Number({ minimum: 0, maximum: 2 ** 53 })),
      config: Type.Optional(ImageConfig),
      stored: Type.Optional(
        Type.Object({
          sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
          base: Type.Optional(Type.String({ pattern: baseName.source })),
        }),
      ),
    }),
  }),
  Type.Object({
    type: Type.Literal('volume'),
    report: Type.Object({ volumeId: text, state: Type.Literal('absent') }),
  }),
  Type.Object({ type: Type.Literal('image-progress'), image: text, step: text, percent: Type.Number() }),
  Type.Object({ type: Type.Literal('image-log'), image: text, text: Type.String({ maxLength: 65_536 }) }),
  Type.Object({
    type: Type.Literal('progress'),
    sandboxId: text,
    generation: Type.Integer({ minimum: 0 }),
    step: text,
    percent: Type.Number({ minimum: 0, maximum: 100 }),
  }),
  Type.Object({ type: Type.Literal('mishap'), sandboxId: text, cause: Cause }),
  Type.Object({ type: Type.Literal('saved'), sandboxId: text, archive: ArchiveReport }),
  Type.Object({
    type: Type.Literal('unsaved'),
    sandboxId: text,
    archiveId: Type.String({ maxLength: 255 }),
    reason: Reason,
  }),
  Type.Object({ type: Type.Literal('meters'), samples: MeterSamples }),
  Type.Object({ type: Type.Literal('alive'), imageStorage: Type.Optional(ImageStorageShape) }),
])

const shape = Compile(FromRunnerShape)

/** Maximum unhandled messages of one runner. Above this number, control closes the link, and the runner connects again. */
const mostWaiting = 10_000

const readMessage = (data: RawData): FromRunner | undefined => {
  try {
    const message: unknown = JSON.parse(String(data))
    return shape.Check(message) ? (message as FromRunner) : undefined
  } catch {
    return undefined
  }
}

/**
 * Returns whether a runner may report this gate. A runner with a certificate may report only the gate that has the id of the
 * runner. A runner of the server's machine may also report the server's gate.
 */
const mayHaveGate = (runnerId: string, isCertified: boolean, { id }: GateOfHost) =>
  id === runnerId || (id === localGateId && !isCertified)

/** Serves the link of a runner. `isCertified`: the runner has shown its certificate. */
export const serveRunnerLink = (
  parts: RunningParts,
  { runner, isCertified }: { runner: RunnerIdentity; isCertified: boolean },
  socket: WebSocket,
): void => {
  const runnerId = runner.id
  const { database, clock, log, links, options, settings } = parts
  links.add(runnerId, socket)
  let waiting = 0
  let isRefused = false
  const welcome = async () => {
    const databaseId = await findDatabaseId(database.sql)
    const message: ToRunner = { type: 'welcome', runnerId, heartbeatSeconds: options.heartbeatSeconds, databaseId }
    socket.send(JSON.stringify(message))
  }
  // Resolves when the newest message has been handled. The next message waits for this promise, which keeps the order.
  let last = welcome().catch((error) => {
    log.error({ err: error, runnerId }, 'a runner could not be welcomed; its link is closed')
    socket.close(1011)
  })

  const takeReport = async (report: Report) => {
    try {
      await applyReport(parts, runnerId, report)
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      log.info({ sandboxId: report.sandboxId, runnerId, why: error.message }, 'a report was refused')
      // The runner does not have the newest assignment of the sandbox, so control sends that assignment again.
      const row = await findSandboxById(database.sql, report.sandboxId)
      if (row?.runner_id === runnerId) links.push(runnerId, asAssignment(row))
    }
  }

  /** Closes the link of a runner whose version does not work with control's. Returns whether the link was closed. */
  const refuses = ({ version }: Extract<FromRunner, { type: 'hello' }>): boolean => {
    const refusal = refusalOfVersion(version, settings.version)
    if (refusal === undefined) return false
    isRefused = true
    log.warn({ runnerId, why: refusal }, 'a runner was refused')
    socket.close(closedForVersion, refusal)
    return true
  }

  const take = async (message: FromRunner) => {
    if (isRefused) return
    switch (message.type) {
      case 'hello':
        if (refuses(message)) return
        if (message.gate !== undefined && !mayHaveGate(runnerId, isCertified, message.gate)) {
          log.warn({ runnerId, gateId: message.gate.id }, 'a runner named the gate of another host; its link is closed')
          isRefused = true
          return socket.close(1008, `the gate of runner ${runnerId} must have its id`)
        }
        // If the message names no gate, control adds the gate of the runner's host. Otherwise, the server's gate would serve the
        // runner. But the server's gate cannot reach the runner's address, which is a path on the runner's host.
        if (isCertified) message.gate = await withKeptUrl(parts, runnerId, message.gate ?? {})
        await writeHello(database.sql, runnerId, message, { silentBefore: silentBefore(parts), now: clock.now() })
        await reconcileSnapshots(database, clock.now())
        links.notePlace(runnerId, { runnerAddress: message.address, ...placeOfGate(message.gate) })
        links.say(runnerId, { type: 'list' })
        return
      case 'alive':
        await writeHeartbeat(database.sql, runnerId, {
          imageStorage: message.imageStorage && knownOf(message.imageStorage),
          ...{ silentBefore: silentBefore(parts), now: clock.now() },
        })
        return
      case 'image':
        await applyImageReport(parts, runner, message.report)
        return
      case 'volume':
        await applyVolumeReport(parts, runner, message.report)
        return
      case 'image-progress':
        await keepProgress(parts, runner, message)
        return
      case 'image-log':
        await addBuildLog(parts, runner, message)
        return
      case 'report': {
        const { report } = message
        const attributes = { 'alcove.sandbox': report.sandboxId, 'alcove.sandbox.state': report.state }
        await belowPlace(message, () =>
          span('sandbox report', { kind: 'consumer', attributes }, () => takeReport(report)),
        )
        return
      }
      case 'mishap':
        await addMishap(parts, runnerId, message)
        return
      case 'saved':
        await applySaved(parts, runnerId, message)
        return
      case 'unsaved':
        await applyUnsaved(parts, runnerId, message)
        return
      case 'meters':
        await keepSamples(parts, runnerId, message.samples)
        return
      case 'progress':
        await applyProgress(parts, runnerId, message)
    }
  }

  socket.on('message', (data) => {
    const message = readMessage(data)
    if (message === undefined || waiting >= mostWaiting) {
      log.warn({ runnerId }, 'a runner said what nobody understands; its link is closed')
      socket.close(1008, message ? 'too much at once' : 'not a message of this protocol')
      return
    }
    waiting += 1
    last = last
      .then(() => take(message))
      .catch((error) => log.error({ err: error, runnerId }, 'what a runner said could not be kept'))
      .finally(() => {
        waiting -= 1
      })
  })
  socket.on('close', () => links.remove(runnerId, socket))
  socket.on('error', (error) => log.info({ err: error, runnerId }, 'the link of a runner failed'))
}
