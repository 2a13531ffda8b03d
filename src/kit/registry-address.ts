// Reads addresses of registries, and chooses an organization's account for an image. Control and the runner share this file, so
// that they choose the same account.

/** Host names of Docker Hub. Image names use the first name. */
const dockerHub = ['docker.io', 'index.docker.io', 'registry-1.docker.io', 'registry.hub.docker.com', 'hub.docker.com']

const hostShape = /^(?:[a-z\d](?:[a-z\d-]*[a-z\d])?)(?:\.[a-z\d](?:[a-z\d-]*[a-z\d])?)*(?::[1-9]\d{0,4})?$/
const longest = 255

/** Returns the host, and perhaps port, that image names use for a registry. Docker Hub is always `docker.io`. */
export const canonicalRegistry = (host: string): string => {
  const name = host.toLowerCase().replace(/:443$/, '')
  return dockerHub.includes(name) ? 'docker.io' : name
}

/**
 * Returns the host of a registry's address, which may lack a scheme. For a wrong address, returns a text that begins with
 * "must". The caller puts the name of the field before this text.
 */
export const readRegistryAddress = (given: string): { host: string; isPlain: boolean } | string => {
  const text = given.trim()
  const [, scheme = 'https', rest = text] = /^([a-z][a-z\d+.-]*):\/\/(.*)$/is.exec(text) ?? []
  if (!/^https?$/i.test(scheme)) return 'must begin with https:// or with the name of a host'
  if (rest.includes('@')) return 'must hold no credentials; they have fields of their own'
  if (/[?#\\\s]/.test(rest)) return 'must be only the host of a registry, such as ghcr.io or registry.example:5000'
  const [, name = '', path = ''] = /^([^/]*)(.*)$/s.exec(rest) ?? []
  // Docker's own configuration files have https://index.docker.io/v1/ as the address of Docker Hub, so this path is
  // allowed.
  if (!/^(?:\/|\/v[12]\/?)?$/.test(path)) return 'must have no path; the part before the repository is the project'
  const host = name.toLowerCase()
  const url = `https://${host}/`
  const isSound = host.length <= longest && hostShape.test(host) && URL.canParse(url)
  // An IP address in an unusual notation, such as 0x7f.1, is refused, because people would not see which host it means.
  if (!isSound || new URL(url).hostname !== host.replace(/:\d+$/, ''))
    return 'must be the host of a registry, such as ghcr.io or registry.example:5000'
  // In an image's name, a host without a dot and without a port would be read as a part of the repository.
  if (!/[.:]/.test(host) && host !== 'localhost') return 'must be a host with a dot or a port in its name'
  return { host: canonicalRegistry(host), isPlain: /^http$/i.test(scheme) }
}

/** An organization's account at a registry. `project`: how the names of its repositories begin. Empty: all repositories. */
export type RegistryAccount = { host: string; project: string }

type Named = { registry: string; repository: string }

const isBelow = (repository: string, project: string) => repository === project || repository.startsWith(`${project}/`)

/**
 * Returns the account at the image's registry whose project is the longest beginning of the repository's name. If no project fits,
 * returns an account without a project, or else the first account.
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
