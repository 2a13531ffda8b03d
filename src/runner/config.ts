import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { showsCertificate } from '#src/kit/credential.ts'
import { instanceOf } from '#src/kit/instance.ts'
import { openNetworksMeaning, readIpv4Network } from '#src/kit/networks.ts'
import { type Mirror, mirrorsMeaning, readMirrors } from '#src/kit/registry-mirrors.ts'
import { namesIn, readSettings, type Settings } from '#src/kit/settings.ts'
import { readStoreAddress, type StoreAddress } from '#src/kit/store-address.ts'
import { readTelemetry, type TelemetrySettings } from '#src/kit/telemetry/settings.ts'
import type { GateOfHost } from '#src/wire/hosts.ts'

export type RunnerConfig = {
  instance: string
  controlUrl: URL
  /** The runner's key. Empty if the runner proves itself to control with its certificate. */
  runnerKey: string
  /** Directory with the runner's certificate. Undefined: the runner has no certificate. */
  certificatesDirectory?: string | undefined
  /**
   * The gate through which clients reach the runner's sandboxes. Absent: any gate of this machine may connect to the runner's
   * socket.
   */
  gate?: GateOfHost | undefined
  /** `<data>/runner`: directory of the journal, the storage pool and the images. */
  directory: string
  /** The unix socket for requests from gates. The group `socketGid` may connect to it. */
  socket: string
  socketGid: number
  /** Directory of cached image files that this runner has built. All Alcove servers on this machine share the directory. */
  cacheDirectory: string
  /** Directory of image files that callers of the API may use. Only the operator puts files there. */
  imagesDirectory: string
  /** Image registries (host:port) that the runner contacts without encryption. */
  plainRegistries: readonly string[]
  /** Image registries from which the runner may fetch images. Absent: any registry. */
  registries: readonly string[] | undefined
  /** Image registries (host:port) that may have a private address. */
  privateRegistries: readonly string[]
  /** Mirrors of image registries. The runner tries the mirrors of a registry before the registry itself. */
  registryMirrors: readonly Mirror[]
  /** Private networks and networks of the host that sandboxes may reach, because the operator allows it. */
  openNetworks: readonly string[]
  /** Path of a file with credentials for image registries, in the format of containers-auth.json(5). */
  registryAuthFile: string | undefined
  /** Interval in seconds at which the use of sandboxes is reported to control. 0 disables the reports. */
  meterSeconds: number
  /** Speed limit of each sandbox's disk in MiB per second, which applies to reads and to writes separately. 0: no limit. */
  diskMebibytesPerSecond: number
  offersSudo: boolean
  /** Directory for volumes, which the operator has mounted on every host. Absent: new volumes are on this host's disk. */
  volumesDirectory: string | undefined
  /** The object store for the disks of archived sandboxes. */
  archiveStore: StoreAddress
  /** Whether other runners can use the archive store, too: true if the operator has configured a store. */
  sharesStore: boolean
  telemetry: TelemetrySettings
}

export const loadConfig = (environment = process.env): RunnerConfig =>
  readSettings(environment, ({ url, text, whole, optional, complain }) => {
    const directory = text('ALCOVE_RUNNER_DIR', 'directory of the runner, usually <data>/runner')
    const data = dirname(directory)
    const controlUrl = url('ALCOVE_CONTROL_URL', 'URL of control, such as http://127.0.0.1:3000')
    const certificatesDirectory = optional('ALCOVE_CERTIFICATES_DIR')
    return {
      instance: existsSync(data) ? instanceOf(data) : '',
      controlUrl,
      certificatesDirectory,
      runnerKey: showsCertificate(controlUrl, certificatesDirectory)
        ? ''
        : text('ALCOVE_RUNNER_KEY', 'key of the runner for control; not needed with a certificate'),
      gate: readGate(optional, complain),
      directory,
      socket: optional('ALCOVE_RUNNER_SOCKET') ?? `${data}/run/runner.sock`,
      socketGid: whole('ALCOVE_RUNNER_SOCKET_GID', 'group id of the gate'),
      cacheDirectory: optional('ALCOVE_CACHE_DIR') ?? '/var/cache/alcove',
      imagesDirectory: optional('ALCOVE_IMAGES_DIR') ?? `${data}/images`,
      plainRegistries: namesIn(optional('ALCOVE_PLAIN_REGISTRIES')),
      registries: optional('ALCOVE_REGISTRIES') === undefined ? undefined : namesIn(optional('ALCOVE_REGISTRIES')),
      privateRegistries: namesIn(optional('ALCOVE_PRIVATE_REGISTRIES')),
      registryMirrors: readRegistryMirrors(optional('ALCOVE_REGISTRY_MIRRORS'), complain),
      openNetworks: readOpenNetworks(optional('ALCOVE_OPEN_NETWORKS'), complain),
      registryAuthFile: optional('ALCOVE_REGISTRY_AUTH'),
      meterSeconds: readMeterSeconds(optional('ALCOVE_METER_SECONDS') ?? '60', complain),
      diskMebibytesPerSecond: readDiskSpeed(optional('ALCOVE_DISK_MIB_PER_SECOND'), complain),
      offersSudo: readSudo(optional('ALCOVE_SUDO'), complain),
      volumesDirectory: readVolumesDirectory(optional('ALCOVE_VOLUMES_DIR'), complain),
      archiveStore: readArchiveStore({ optional, complain }, `${data}/archive`),
      sharesStore: optional('ALCOVE_ARCHIVE_STORE') !== undefined,
      telemetry: readTelemetry(environment, 'alcove-runner'),
    }
  })

/** Reads the id, the address and the public URL of the gate of this runner's sandboxes. An empty setting counts as absent. */
const readGate = (optional: Settings['optional'], complain: (sentence: string) => void): GateOfHost | undefined => {
  const [id, address, publicUrl] = ['ID', 'ADDRESS', 'PUBLIC_URL'].map((end) => optional(`ALCOVE_GATE_${end}`))
  if (address !== undefined && !/^\S{1,255}:\d{1,5}$/.test(address)) {
    complain('ALCOVE_GATE_ADDRESS is not usable: host:port at which the gate of this machine listens for other gates')
  }
  if (publicUrl !== undefined && !(URL.canParse(publicUrl) && /^https?:/.test(publicUrl))) {
    complain('ALCOVE_GATE_PUBLIC_URL is not usable: the URL at which clients reach the gate of this machine')
  }
  if (id === undefined) return undefined
  return { id, ...(address && { address }), ...(publicUrl && { publicUrl: publicUrl.replace(/\/+$/, '') }) }
}

const readRegistryMirrors = (given: string | undefined, complain: (sentence: string) => void): Mirror[] => {
  const mirrors = readMirrors(namesIn(given))
  if (mirrors === undefined) complain(`ALCOVE_REGISTRY_MIRRORS is not usable: ${mirrorsMeaning}`)
  return mirrors ?? []
}

const readOpenNetworks = (given: string | undefined, complain: (sentence: string) => void): string[] => {
  const networks = namesIn(given)
  if (networks.some((network) => readIpv4Network(network) === undefined)) {
    complain(`ALCOVE_OPEN_NETWORKS is not usable: ${openNetworksMeaning}`)
  }
  return networks
}

const readMeterSeconds = (given: string, complain: (sentence: string) => void): number => {
  const seconds = Number(given)
  if (/^\d{1,4}$/.test(given) && seconds <= 3600) return seconds
  complain(
    'ALCOVE_METER_SECONDS is not usable: every how many seconds it is written down what sandboxes use, at most 3600; 0: never',
  )
  return 60
}

const defaultDiskMebibytesPerSecond = 200

const readDiskSpeed = (given: string | undefined, complain: (sentence: string) => void): number => {
  if (given === undefined) return defaultDiskMebibytesPerSecond
  if (/^\d{1,6}$/.test(given)) return Number(given)
  complain('ALCOVE_DISK_MIB_PER_SECOND is not usable: whole MiB per second, up to 999999; 0 disables the limit')
  return defaultDiskMebibytesPerSecond
}

const readSudo = (given: string | undefined, complain: (sentence: string) => void): boolean => {
  if (given !== undefined && given !== 'true' && given !== 'false') complain('ALCOVE_SUDO must be true or false')
  return given !== 'false'
}

const readVolumesDirectory = (given: string | undefined, complain: (sentence: string) => void): string | undefined => {
  if (given !== undefined && !given.startsWith('/')) complain('ALCOVE_VOLUMES_DIR must be an absolute path')
  return given
}

const readArchiveStore = (
  { optional, complain }: Pick<Settings, 'optional' | 'complain'>,
  standard: string,
): StoreAddress => {
  const [address, accessKey, secret] = [
    optional('ALCOVE_ARCHIVE_STORE'),
    optional('ALCOVE_ARCHIVE_S3_KEY'),
    optional('ALCOVE_ARCHIVE_S3_SECRET'),
  ]
  const unset: StoreAddress = { kind: 'directory', path: standard }
  if (address === undefined) return unset
  const store = readStoreAddress({ address, accessKey, secret })
  if (typeof store !== 'string') return store
  complain(`ALCOVE_ARCHIVE_STORE ${store}`)
  return unset
}
