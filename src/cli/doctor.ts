// `alcove doctor`: tries each feature of the host that Alcove needs, and prints the results.
import { inspectHost } from '#src/doctor/inspect.ts'
import type { Mirrors } from '#src/doctor/mirrors.ts'
import { checkPeer, renderPeerChecks } from '#src/doctor/peer.ts'
import { renderFindings } from '#src/doctor/render.ts'
import { noNetworks, readNetworks } from '#src/kit/networks.ts'
import { readMirrors } from '#src/kit/registry-mirrors.ts'
import { sourcesOfThisHost } from '#src/runner/images/apt-sources.ts'
import { Complaint } from '#src/up/complaint.ts'
import { authorityHashIn } from '#src/wire/hosts.ts'

const namesIn = (setting: string | undefined) => (setting ?? '').split(/[\s,]+/).filter((name) => name !== '')

const hostOf = (url: string) => /^https?:\/\/([^/]+)/.exec(url)?.[1]

/** Returns the mirrors that this host uses: those of apt, and those in the settings. A malformed setting is ignored. */
const mirrorsOf = (env: NodeJS.ProcessEnv): Mirrors => ({
  packages: sourcesOfThisHost().lines.flatMap((line) => hostOf(line.split(' ')[1] ?? '') ?? []),
  images: (readMirrors(namesIn(env['ALCOVE_REGISTRY_MIRRORS'])) ?? []).flatMap(
    ({ location }) => location.split('/')[0] ?? [],
  ),
  openNetworks: readNetworks(namesIn(env['ALCOVE_OPEN_NETWORKS']).join(',')) ?? noNetworks,
  privateRegistries: namesIn(env['ALCOVE_PRIVATE_REGISTRIES']),
})

/** Prints the results of all probes. The exit code is 1 if sandboxes cannot run on this host. */
export const doctor = async (dataDir: string, env: NodeJS.ProcessEnv): Promise<void> => {
  const findings = await inspectHost({ dataDir, mirrors: mirrorsOf(env) })
  process.stdout.write(renderFindings(findings))
  if (findings.some(({ status }) => status === 'missing')) process.exitCode = 1
}

/** Checks each step of a connection to a server's port for hosts. The exit code is 1 if this machine cannot join. */
export const doctorOfPeer = async (address: string, token: string | undefined): Promise<void> => {
  const url = URL.parse(address)
  if (url?.protocol !== 'https:')
    throw new Complaint(`--peer ${address} is not an address such as https://192.0.2.7:4603`)
  const hash = token === undefined ? undefined : authorityHashIn(token)
  if (token !== undefined && hash === undefined) throw new Complaint('this --token is not for joining over the network')
  const { checks, authority } = await checkPeer(url, hash)
  process.stdout.write(renderPeerChecks(checks))
  if (authority === undefined) process.exitCode = 1
}
