// Finds the mirror and the release that apt uses on this host, for the default image. Ignores package archives that do not belong
// to the distribution.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

type Distribution = { id: string; codename: string }

/**
 * `suite`: release, such as `bookworm`. `lines`: for `sources.list`, one per package archive, with the components that the image
 * needs.
 */
export type AptSources = { suite: string; lines: readonly string[] }

const keyrings = /^\/usr\/share\/keyrings\/(debian|ubuntu)-archive-keyring\.(gpg|asc|pgp)$/

const fallback: Distribution = { id: 'debian', codename: 'bookworm' }

/** Returns the distribution of the default image: the host's own release of Debian or Ubuntu, otherwise Debian. */
export const distributionIn = (osRelease: string): Distribution => {
  const value = (name: string) => new RegExp(`^${name}="?([a-z0-9.-]+)"?$`, 'm').exec(osRelease)?.[1]
  const [id, codename] = [value('ID'), value('VERSION_CODENAME')]
  return (id === 'debian' || id === 'ubuntu') && codename !== undefined ? { id, codename } : fallback
}

type Entry = { uri: string; suite: string; components: string[]; signedBy: string | undefined }

const words = (text: string | undefined) => (text ?? '').split(/\s+/).filter((word) => word !== '')

const oneLineEntries = (text: string): Entry[] =>
  text.split('\n').flatMap((line) => {
    const match = /^deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+([^#]*)/.exec(line.trim())
    if (match === null) return []
    const [, options, uri, suite, components] = match
    const signedBy = /signed-by=(\S+)/i.exec(options ?? '')?.[1]
    return [{ uri: uri as string, suite: suite as string, components: words(components), signedBy }]
  })

const stanzaEntries = (text: string): Entry[] =>
  text.split(/\n\s*\n/).flatMap((stanza) => {
    const unfolded = stanza.replace(/^#.*\n?/gm, '').replace(/\n[ \t]+/g, ' ')
    const field = (name: string) => new RegExp(`^${name}:\\s*(.*)$`, 'im').exec(unfolded)?.[1]
    if (!words(field('Types')).includes('deb') || field('Enabled')?.trim().toLowerCase() === 'no') return []
    const signedBy = field('Signed-By')?.trim()
    return words(field('URIs')).flatMap((uri) =>
      words(field('Suites')).map((suite) => ({ uri, suite, components: words(field('Components')), signedBy })),
    )
  })

/** Returns the apt sources for the default image. `files`: names and contents of the source lists in `/etc/apt`. */
export const sourcesFrom = (
  { id, codename }: Distribution,
  files: readonly [name: string, text: string][],
): AptSources => {
  const components = id === 'ubuntu' ? 'main universe' : 'main'
  const suites = [codename, `${codename}-updates`, `${codename}-security`]
  const lines = files
    .flatMap(([name, text]) => (name.endsWith('.sources') ? stanzaEntries(text) : oneLineEntries(text)))
    .filter((entry) => suites.includes(entry.suite) && entry.components.includes('main'))
    .filter(({ uri, signedBy }) => /^https?:/.test(uri) && (signedBy === undefined || keyrings.test(signedBy)))
    .map(({ uri, suite }) => `deb ${uri} ${suite} ${components}`)

  const hasRelease = lines.some((line) => line.split(' ')[2] === codename)
  return { suite: codename, lines: hasRelease ? [...new Set(lines)] : standardLines(id, codename, components) }
}

const standardLines = (id: string, codename: string, components: string) =>
  id === 'ubuntu'
    ? ['', '-updates', '-security'].map((end) => `deb http://archive.ubuntu.com/ubuntu ${codename}${end} ${components}`)
    : [
        ...['', '-updates'].map((end) => `deb http://deb.debian.org/debian ${codename}${end} ${components}`),
        `deb http://deb.debian.org/debian-security ${codename}-security ${components}`,
      ]

const textOf = (path: string) => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

const namesIn = (directory: string) => {
  try {
    return readdirSync(directory).sort()
  } catch {
    return []
  }
}

export const sourcesOfThisHost = (): AptSources => {
  const directory = '/etc/apt/sources.list.d'
  const paths = [
    '/etc/apt/sources.list',
    ...namesIn(directory)
      .filter((name) => /\.(list|sources)$/.test(name))
      .map((name) => join(directory, name)),
  ]
  return sourcesFrom(
    distributionIn(textOf('/etc/os-release')),
    paths.map((path) => [path, textOf(path)]),
  )
}
