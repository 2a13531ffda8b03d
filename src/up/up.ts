// `alcove up`: creates everything that a server lacks, starts its programs, keeps them running, and stops them in the
// right order.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { identityOf } from '#src/kit/process-identity.ts'
import { localGateId } from '#src/wire/hosts.ts'
import { addressesOf } from './address.ts'
import { commandFor } from './command-for.ts'
import { Complaint } from './complaint.ts'
import type { UpConfig } from './config.ts'
import { type DashboardPlace, ensureDashboard, findDashboardPlace } from './dashboard/ensure.ts'
import {
  type DataDirectory,
  newApiKey,
  newEncryptionKey,
  newServiceKey,
  prepareDataDirectory,
  readOlderEncryptionKeys,
  readSecret,
} from './data-directory.ts'
import { orDiskComplaint } from './disk-complaint.ts'
import { createDisplay, type Display, welcome } from './display.ts'
import { askFirstLink } from './first-link.ts'
import { takeOverFormerNames } from './former-names.ts'
import { keepOwnCertificates } from './hosts/own-certificates.ts'
import { MakingImage } from './making-image.ts'
import { buildNativePrograms } from './native-programs.ts'
import { endOrphans } from './orphans.ts'
import { checkPortsAreFree } from './ports.ts'
import { controlProgram, gateProgram, postgresProgram, runnerProgram, sshGatewayProgram } from './programs.ts'
import { checkCodeIsReadable } from './readable-code.ts'
import { reserveIds } from './reserved-ids.ts'
import { readSshHostKey } from './ssh-host-key.ts'
import { upStateWriter, writeUpState } from './state-file.ts'
import { Supervised } from './supervised.ts'
import { ensurePackages } from './system-packages.ts'
import { codeDirectory, onceAskedToStop, takeDataDirectory } from './taking.ts'

type UpOptions = {
  /**
   * Returns what this host lacks for building the default image, or undefined. `runnerDirectory`: the data directory of
   * the runner.
   */
  lackOfImage: (runnerDirectory: string) => string | undefined
  data: string
  host: string
  port: number
  publicHost?: string | undefined
  /** The address at which other machines reach this machine. Undefined: no other machine may join over the network. */
  hosts?: string | undefined
}

/** How many ms programs may take to end. The further steps of a stop are short, so `up` stops within 5 s. */
const graceMs = 4000

const firstStart =
  'First start: the default image of sandboxes is made from Debian packages, unless this machine has it already. With two CPUs ' +
  'that takes one to two minutes; later starts take seconds.'

/**
 * Runs a server until it is asked to stop. Resolves when all programs have stopped. Throws a Complaint if the server
 * cannot start.
 */
export const runUp = (options: UpOptions, config: UpConfig): Promise<void> =>
  orDiskComplaint(options.data, () => runHouse(options, config))

const runHouse = async (options: UpOptions, config: UpConfig): Promise<void> => {
  const startedAt = performance.now()
  const display = createDisplay()
  if (process.getuid?.() !== 0) {
    throw new Complaint('sandboxes need root (cgroups, mounts, networks). Run the same command with sudo')
  }
  const { host, port, publicHost, hosts } = options
  const addresses = addressesOf(host, port, publicHost, config.publicUrls, config.ssh, hosts)
  if (hosts !== undefined && Object.keys(config.archive).length === 0) {
    throw new Complaint(
      'with --hosts, ALCOVE_ARCHIVE_STORE must be set to a store that all machines reach: s3://…, or file:///PATH of a directory that you mount on all of them',
    )
  }
  checkCodeIsReadable(codeDirectory)
  ensurePackages(display.say)
  const data = prepareDataDirectory(options.data)
  takeDataDirectory(data)
  reserveIds()
  await buildNativePrograms(display.say)
  const dashboard = findDashboardPlace(config.cacheDirectory)
  // Do not wait for the build of the dashboard here, so that the programs start meanwhile.
  const built = ensureDashboard(dashboard, display.say)
  await endOrphans(data)
  const { ssh } = addresses
  await checkPortsAreFree([
    { host, port },
    { host, port: port + 1 },
    ...(ssh ? [ssh.listen] : []),
    ...(hosts === undefined ? [] : [3, 4].map((more) => ({ host: hosts, port: port + more }))),
  ])

  const stopAsked = onceAskedToStop()
  const firstKey = readSecret(data, 'admin.key', newApiKey)
  if (firstKey.isNew) display.say(firstStart)
  const house = startPrograms({ data, config, options, display, addresses, dashboard, firstKey: firstKey.value })
  try {
    const outcome = await Promise.race([house.ready, house.gaveUp, stopAsked])
    display.endProgress()
    if (outcome === 'ready') {
      const lackOfPages = await built
      const link = firstKey.isNew ? await askFirstLink(addresses.controlUrl, firstKey.value) : undefined
      process.stdout.write(
        welcome({
          url: addresses.publicUrl,
          proxyUrl: addresses.publicProxyUrl,
          key: firstKey.value,
          keyIsNew: firstKey.isNew,
          keyCommand: commandFor('key', options.data),
          link,
          linkCommand: config.controlSettings['ALCOVE_OIDC_ISSUER'] ? undefined : commandFor('user link', options.data),
          seconds: (performance.now() - startedAt) / 1000,
        }),
      )
      if (hosts !== undefined) {
        const command = commandFor('runner add NAME', options.data)
        display.say(`Other machines may join at https://${addresses.hosts?.control}; to add one: ${command}`)
      }
      if (lackOfPages !== undefined) display.say(`The dashboard has no pages: ${lackOfPages}`)
      const lack = options.lackOfImage(data.runner)
      if (lack !== undefined) {
        display.say(`The default image ${lack}; to try again: ${commandFor('images renew', options.data)}`)
      }
      display.say(`Stopping (${await stopAsked}) …`)
    }
  } finally {
    await house.stop()
  }
}

type House = {
  ready: Promise<'ready'>
  /** Rejects if a program has ended several times without having served once. */
  gaveUp: Promise<never>
  stop: () => Promise<void>
}

type HouseParts = {
  data: DataDirectory
  config: UpConfig
  options: UpOptions
  display: Display
  addresses: ReturnType<typeof addressesOf>
  dashboard: DashboardPlace
  firstKey: string
}

/**
 * If a program ends this many times before it has served once, `up` stops. The program's log then says more than a further start
 * would.
 */
const triesBeforeFirstReady = 5

const startPrograms = ({ data, config, options, display, addresses, dashboard, firstKey }: HouseParts): House => {
  takeOverFormerNames(data.log, config.cacheDirectory)
  const database = Promise.withResolvers<string>()
  if (config.databaseUrl) database.resolve(config.databaseUrl)
  const gaveUp = Promise.withResolvers<never>()
  const making = new MakingImage(display.progress, () => save())
  const parts = {
    data,
    config,
    addresses,
    port: options.port,
    databaseUrl: database.promise,
    onProgress: making.take,
    dashboard,
    secrets: {
      firstKey,
      proxyKey: readSecret(data, 'proxy.key', newServiceKey).value,
      runnerKey: readSecret(data, 'runner.key', newServiceKey).value,
      encryptionKey: readSecret(data, 'encryption.key', newEncryptionKey).value,
      sshGatewayKey: readSecret(data, 'ssh-gateway.key', newServiceKey).value,
      sshHostKey: readSshHostKey(data),
      olderEncryptionKeys: readOlderEncryptionKeys(data),
    },
  }
  const runnerKey = parts.secrets.runnerKey
  const controlServes = Promise.withResolvers<void>()
  const own =
    addresses.hosts &&
    keepOwnCertificates({
      ...{ data, controlUrl: addresses.controlUrl, runnerKey },
      ...{ controlServes: controlServes.promise, say: display.say },
    })
  const gate = { id: localGateId, ...(addresses.hosts && { address: addresses.hosts.gate }) }
  const peers = own && { gate, certificates: own.directory, hasCertificates: own.renewal.hasCertificates }
  const onChange = (changed: Supervised) => {
    save()
    const { name, state, lastEnd, restarts } = changed.state
    if (state === 'waiting') display.say(`${name} ended (${lastEnd}); starting it again. Log: ${data.log}/${name}.log`)
    if (state === 'waiting' && restarts + 1 >= triesBeforeFirstReady && !served.has(name)) {
      gaveUp.reject(new Complaint(`${name} does not start: ${lastEnd}. Its log is ${join(data.log, `${name}.log`)}`))
    }
    if (state === 'refused') display.say(`control does not accept the key of ${name}. Log: ${data.log}/${name}.log`)
    if (state === 'ready') served.add(name)
    if (state === 'ready' && name === 'control') controlServes.resolve()
  }
  const served = new Set<string>()
  const supervised = (program: ConstructorParameters<typeof Supervised>[0]) => new Supervised(program, onChange)
  const postgres = config.databaseUrl ? undefined : supervised(postgresProgram(parts, data.postgres, database.resolve))
  const sshGateway = addresses.ssh && sshGatewayProgram(parts, addresses.ssh.listen)
  const workers = [
    controlProgram(parts),
    gateProgram({ ...parts, peers }),
    runnerProgram({ ...parts, gate }),
    ...(sshGateway ? [sshGateway] : []),
  ].map(supervised)
  const all = [...(postgres ? [postgres] : []), ...workers]
  const self = identityOf(process.pid)
  const current = () => ({
    ...self,
    host: options.host,
    port: options.port,
    url: addresses.publicUrl,
    ...(addresses.hosts && { hosts: addresses.hosts.control }),
    programs: all.map((program) => program.state),
    ...making.state,
  })
  const write = upStateWriter(data.stateFile, display.say)
  const save = () => write(current())
  // Write the state file before any program is started. If the file cannot be written, no program may start.
  writeUpState(data.stateFile, current())
  for (const program of all) program.begin()

  const stop = async () => {
    const ends = [own?.renewal[Symbol.asyncDispose](), ...workers.map((program) => program.stop(graceMs))]
    // PostgreSQL stops last, so that control can finish its writes. But if the other programs take too long, PostgreSQL no longer
    // waits for their end, so that it still has time for a clean stop.
    await Promise.race([Promise.all(ends), pause(graceMs - 1000, undefined, { ref: false })])
    await Promise.all([...ends, postgres?.stop(1500)])
    if (all.every((program) => program.state.pid === 0)) rmSync(data.stateFile, { force: true })
  }
  gaveUp.promise.catch(() => {}) // Without this handler, the rejection would end the process if no caller awaits it.
  return {
    ready: Promise.all(all.map((program) => program.firstReady)).then(() => 'ready'),
    gaveUp: gaveUp.promise,
    stop,
  }
}
