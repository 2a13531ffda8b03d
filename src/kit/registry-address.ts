// Reads the names of registries, and chooses which of an organization's accounts is used for an image. Control and the
// runner share these rules.

/** Names of Docker Hub. Images are named by the first one. */
const dockerHub = ['docker.io', 'index.docker.io', 'registry-1.docker.io', 'registry.hub.docker.com', 'hub.docker.com']

const hostShape = /^(?:[a-z\d](?:[a-z\d-]*[a-z\d])?)(?:\.[a-z\d](?:[a-z\d-]*[a-z\d])?)*(?::[1-9]\d{0,4})?$/
const longest = 255

/**
 * The host (and port) by which images of a registry are named. Docker Hub has several names, and one of them is
 * always used. The port 443 is left out, because it is the usual port.
 */
export const canonicalRegistry = (host: string): string => {
  const name = host.toLowerCase().replace(/:443$/, '')
  return dockerHub.includes(name) ? 'docker.io' : name
}

/**
 * Reads the address of a registry, with or without a scheme, and returns its host. Returns a string that begins with "must" if the
 * address cannot be used: it completes a sentence about the field.
 */
export const readRegistryAddress = (given: string): { host: string; isPlain: boolean } | string => {
  const text = given.trim()
  const [, scheme = 'https', rest = text] = /^([a-z][a-z\d+.-]*):\/\/(.*)$/is.exec(text) ?? []
  if (!/^https?$/i.test(scheme)) return 'must begin with https:// or with the name of a host'
  if (rest.includes('@')) return 'must hold no credentials; they have fields of their own'
  if (/[?#\\\s]/.test(rest)) return 'must be only the host of a registry, such as ghcr.io or registry.example:5000'
  const [, name = '', path = ''] = /^([^/]*)(.*)$/s.exec(rest) ?? []
  // Docker's own files name Docker Hub as https://index.docker.io/v1/.
  if (!/^(?:\/|\/v[12]\/?)?$/.test(path)) return 'must have no path; the part before the repository is the project'
  const host = name.toLowerCase()
  const url = `https://${host}/`
  const isSound = host.length <= longest && hostShape.test(host) && URL.canParse(url)
  // An address in another notation, for example 0x7f.1, would mean another host than it seems to name.
  if (!isSound || new URL(url).hostname !== host.replace(/:\d+$/, ''))
    return 'must be the host of a registry, such as ghcr.io or registry.example:5000'
  // Without a dot, a colon or `localhost`, the first part of an image's name is a repository and not a registry.
  if (!/[.:]/.test(host) && host !== 'localhost') return 'must be a host with a dot or a port in its name'
  return { host: canonicalRegistry(host), isPlain: /^http$/i.test(scheme) }
}

/** An account of an organization at a registry. `project`: the beginning of its repositories' names; may be empty. */
export type RegistryAccount = { host: string; project: string }

type Named = { registry: string; repository: string }

const isBelow = (repository: string, project: string) => repository === project || repository.startsWith(`${project}/`)

/**
 * Finds the account for an image, among those at the image's registry. First choice: the longest project to which the
 * repository belongs. Otherwise: an account without a project, or else the first account.
 */
export const accountFor = <Account extends RegistryAccount>(
  { registry, repository }: Named,
  accounts: readonly Account[],
): Account | undefined => {
  const there = accounts.filter(({ host }) => host === canonicalRegistry(registry))
  const [inProject] = there
    .filter(({ project }) => project !== '' && isBelow(repository, project))
    .sort((a, b) => b.project.length - a.project.length)
  return inProject ?? there.find(({ project }) => project === '') ?? there[0]
}
