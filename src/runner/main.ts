// Starts the runner. First adopts the sandboxes on this host, so that they can be reached immediately. Then connects to control,
// and makes the default image.
import { mkdir } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { credentialFor } from '#src/kit/credential.ts'
import type { Logger } from '#src/kit/log.ts'
import { repeat } from '#src/kit/repeat.ts'
import { observe, placeHeaders } from '#src/kit/telemetry/telemetry.ts'
import { version } from '#src/kit/version.ts'
import { agentAt } from '#src/toolbox/agent/agent.ts'
import { controlHostName } from '#src/wire/hosts.ts'
import type { Progress, Report } from '#src/wire/runner-link.ts'
import { travelThrough } from './archive/bases.ts'
import { openStore } from './archive/store.ts'
import { AllImages } from './building/all-images.ts'
import { ImageBuilder } from './building/image-builder.ts'
import { ImageKeeper } from './building/image-keeper.ts'
import { imageStorageOf } from './building/image-storage.ts'
import { LineCache } from './building/line-cache.ts'
import { ownProcsFile, readLayout } from './cgroup/layout.ts'
import type { RunnerConfig } from './config.ts'
import { ContextStore } from './contexts/store.ts'
import { sweepContexts } from './contexts/sweep.ts'
import { ControlClient } from './control-link/control-client.ts'
import { isOurDatabase } from './control-link/database-mark.ts'
import { KeyRefusal, refusedAfterMs } from './control-link/key-refused.ts'
import { Link } from './control-link/link.ts'
import { Listing } from './control-link/listing.ts'
import { Reporter } from './control-link/reporter.ts'
import { serveGates } from './gate-link/socket.ts'
import { sandboxStatuses } from './host.ts'
import { GivenBack } from './images/given-back.ts'
import { standardLimits } from './images/limits.ts'
import { Renewal } from './images/renewal.ts'
import { openImageStore } from './images/store.ts'
import { Keeper } from './keeping/keeper.ts'
import { Saver } from './keeping/saver.ts'
import { VolumeKeeper } from './keeping/volume-keeper.ts'
import { serveCommands } from './launch.ts'
import { openHost } from './machine-host.ts'
import { Sampler } from './meters/sampler.ts'
import { openNetworkPool } from './network/pool.ts'
import { resolversForSandboxes } from './network/resolvers.ts'

const code = resolve(import.meta.dirname, '../..')
const spareNetworks = 4
const sweepContextsSeconds = 3600
const relieveImagesSeconds = 10
const secretsEveryMs = 60_000

type Runner = {
  /** Resolves when the default image is on this host and was reported to control. */
  ready: Promise<void>
  /** Resolves with the reason if this runner must end and must not be started again. */
  barred: Promise<string>
  /** Closes the runner. Every sandbox keeps running. */
  close: () => Promise<void>
}

/** Callbacks into the program that has started the runner. */
type RunnerListener = {
  onProgress: (progress: Progress) => void
  /** Called when control has refused the runner's key for a while, and when control accepts the key again. */
  onRefused: (isRefused: boolean) => void
}

export const startRunner = async (
  config: Omit<RunnerConfig, 'telemetry'>,
  log: Logger,
  { onProgress, onRefused }: RunnerListener,
): Promise<Runner> => {
  const { instance, controlUrl, directory, cacheDirectory } = config
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await mkdir(dirname(config.socket), { recursive: true })
  const launcher = resolve(code, 'native/build/launch')
  const commands = serveCommands(launcher, ownProcsFile(readLayout()))
  let tellTrouble = (_sandboxId: string, _detail: string) => {}
  const network = await openNetworkPool({
    ...{ instance, log, spare: spareNetworks, opened: config.openNetworks },
    onTrouble: (sandboxId, detail) => tellTrouble(sandboxId, detail),
  })
  const givenBack = new GivenBack()
  const archiveStore = openStore(config.archiveStore, standardLimits.keepFreeBytes)
  let tellBases = () => {}
  const images = openImageStore({
    givenBack,
    poolDir: directory,
    cacheDir: cacheDirectory,
    filesDir: config.imagesDirectory,
    plainRegistries: config.plainRegistries,
    registries: config.registries,
    privateRegistries: config.privateRegistries,
    mirrors: config.registryMirrors,
    registryAuthFile: config.registryAuthFile,
    publicNetwork: async () => {
      const slot = await network.acquire()
      const { netnsPath } = slot
      const resolvers = resolversForSandboxes()
      return { netnsPath, resolvers, [Symbol.asyncDispose]: () => network.release(slot) }
    },
    sharesLayers: true,
    log,
    onProgress,
    travel: travelThrough(archiveStore, launcher, config.sharesStore),
    onBases: () => tellBases(),
  })
  await images.openTrees()
  const host = await openHost({
    instance,
    directory,
    launcher,
    agentProgram: resolve(code, 'agent/build/alcove-agent'),
    agentAt,
    network,
    images,
    archiveStore,
    diskMebibytesPerSecond: config.diskMebibytesPerSecond,
    offersSudo: config.offersSudo,
    volumesDirectory: config.volumesDirectory,
    log,
  })
  observe(
    { name: 'alcove.runner.sandboxes', unit: '{sandbox}', description: 'Sandboxes on this host by what they are.' },
    () =>
      sandboxStatuses.map((status) => [
        host.list().filter((held) => held.status === status).length,
        { 'alcove.sandbox.state': status },
      ]),
  )
  const contexts = new ContextStore(archiveStore)
  const lines = await LineCache.open({ host, bases: images, givenBack, log })
  const builder = new ImageBuilder({ host, agentAt, contexts, lines })
  const allImages = await AllImages.open(images, host, builder, givenBack)
  observe(
    { name: 'alcove.runner.build.cache', unit: 'By', description: 'Disk of cached lines of Dockerfiles.' },
    () => [[lines.usage().bytes, {}]],
  )
  const gates = await serveGates(
    { host, contexts, configOf: (image) => allImages.configOf(image), log },
    config.socket,
    config.socketGid,
  )

  const refusal = new KeyRefusal((isRefused) => {
    if (isRefused) log.error(`control has refused the key of this runner for ${refusedAfterMs / 1000} s`)
    else log.info('control takes the key of this runner again')
    onRefused(isRefused)
  })
  const credential = credentialFor(controlUrl, {
    key: config.runnerKey,
    certificatesDirectory: config.certificatesDirectory,
    controlName: controlHostName,
  })
  const control = new ControlClient({ controlUrl, credential, log, onAnswer: (status) => refusal.heard(status) })
  const send = (report: Report) => link.say({ type: 'report', report, ...placeHeaders() })
  const reporter = new Reporter({ send, tell: (report) => control.tell(report), log })
  host.onMishap((sandboxId, cause) => link.say({ type: 'mishap', sandboxId, cause }))
  const keeper = new Keeper({
    host,
    report: (report) => reporter.say(report),
    onProgress: (sandboxId, generation, progress) =>
      void link.say({ type: 'progress', sandboxId, generation, ...progress }),
    log,
  })
  const saver = new Saver({
    host,
    onSaved: (saved) => void link.say({ type: 'saved', ...saved }),
    onUnsaved: (unsaved) => void link.say({ type: 'unsaved', ...unsaved }),
    log,
  })
  const imageKeeper = new ImageKeeper({
    images: allImages,
    // If this report is lost, the runner sends it again when control next sends its list of images.
    report: (report) => void link.say({ type: 'image', report }),
    onProgress: (image, progress) => void link.say({ type: 'image-progress', image, ...progress }),
    onText: (image, text) => void link.say({ type: 'image-log', image, text }),
    log,
  })
  const volumeKeeper = new VolumeKeeper({
    host,
    // If this report is lost, the runner sends it again when control next sends its list of volumes.
    report: (report) => void link.say({ type: 'volume', report }),
    log,
  })
  const sampler = new Sampler({
    measureAll: () => host.measureAll(),
    say: (samples) => link.say({ type: 'meters', samples }),
    everySeconds: config.meterSeconds,
    log,
  })
  const listing = new Listing({
    list: () => control.list(),
    log,
    take: (listed, askedAt) => {
      reporter.confirm(listed, askedAt)
      keeper.takeAll(listed, askedAt)
      saver.takeAll(listed)
    },
  })
  const imageListing = new Listing({
    list: () => control.listImages(),
    log,
    take: (listed) => imageKeeper.takeAll(listed),
  })
  const volumeListing = new Listing({
    list: () => control.listVolumes(),
    log,
    take: (listed) => volumeKeeper.takeAll(listed),
  })
  const secretListing = new Listing({
    list: async () => [await control.listSecrets()],
    log,
    everyMs: secretsEveryMs,
    take: ([listed], askedAt) => listed && network.learnSecrets(listed, askedAt),
  })
  const barred = Promise.withResolvers<string>()
  let isBuilt = false
  const known = Promise.withResolvers<void>()
  const link = new Link({
    controlUrl,
    credential,
    log,
    hello: () => ({
      type: 'hello',
      address: `unix:${config.socket}`,
      images: allImages.list(),
      capabilities: { ...host.capabilities, ...(config.sharesStore && { sharesStore: true }) },
      version,
      ...(config.gate && { gate: config.gate }),
    }),
    onDatabase: (databaseId) => {
      if (isOurDatabase(directory, databaseId)) return true
      barred.resolve(
        `the sandboxes in ${directory} are in another database than that of its server. Start the server with the database of these sandboxes, or delete them: alcove purge --data ${dirname(directory)}`,
      )
      return false
    },
    onVersionRefused: (reason) =>
      barred.resolve(`${reason}. Its sandboxes keep running: upgrade the older of the two, and start this host again`),
    imageStorage: () => imageStorageOf(images, allImages, lines, givenBack),
    onAssign: (assignment) => {
      keeper.take(assignment)
      saver.take(assignment)
    },
    onImage: (assignment) => imageKeeper.take(assignment),
    onVolume: (assignment) => volumeKeeper.takeAll([assignment]),
    onSecrets: (secrets) => network.learnSecrets(secrets),
    onList: () => {
      if (isBuilt) known.resolve()
      listing.readSoon()
      imageListing.readSoon()
      volumeListing.readSoon()
      secretListing.readSoon()
    },
    onLost: () => reporter.linkLost(),
  })
  tellBases = () => link.sayHello()
  tellTrouble = (sandboxId, detail) => void link.say({ type: 'mishap', sandboxId, cause: { detail } })
  listing.readSoon()
  const stopSweeping = repeat(
    sweepContextsSeconds,
    async () => {
      const removed = await sweepContexts(contexts, await control.listContexts())
      if (removed > 0) log.info({ removed }, 'files of definitions that nothing needs were removed')
    },
    (err) => log.warn({ err }, 'files of definitions could not be looked through'),
  )

  const stopRelieving = repeat(
    LineCache.relieveSeconds,
    () => lines.relieve(),
    (err) => log.warn({ err }, 'cached lines of Dockerfiles could not be evicted'),
  )
  const stopGivingBack = repeat(
    relieveImagesSeconds,
    () => images.relieve(),
    (err) => log.warn({ err }, 'kept layers of images could not be looked through'),
  )

  const renewal = new Renewal({
    images,
    basesInUse: () => host.basesInUse(),
    runnerDirectory: directory,
    log,
  })
  const build = async () => {
    await images.ensureDefault()
    renewal.start()
    isBuilt = true
    link.sayHello()
    await known.promise
  }
  return {
    ready: build(),
    barred: barred.promise,
    close: async () => {
      renewal[Symbol.dispose]()
      sampler[Symbol.dispose]()
      stopSweeping()
      stopRelieving()
      stopGivingBack()
      keeper[Symbol.dispose]()
      saver[Symbol.dispose]()
      reporter[Symbol.dispose]()
      listing[Symbol.dispose]()
      imageKeeper[Symbol.dispose]()
      imageListing[Symbol.dispose]()
      volumeListing[Symbol.dispose]()
      secretListing[Symbol.dispose]()
      volumeKeeper[Symbol.dispose]()
      link[Symbol.dispose]()
      await gates[Symbol.asyncDispose]()
      await control[Symbol.asyncDispose]()
      await host.close()
      await images.close()
      await archiveStore.close()
      await network.close()
      commands[Symbol.dispose]()
    },
  }
}
