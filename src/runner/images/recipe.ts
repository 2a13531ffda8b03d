// What the default image is made of. Everything that decides its content is in the recipe, and its hash names the result:
// the same recipe is never built twice on a machine, and a changed one never passes for the old.
import { createHash } from 'node:crypto'
import { type AptSources, sourcesOfThisHost } from './apt-sources.ts'

/** Ids inside the image are stored this much higher, once, because every sandbox maps its root to this id. */
export const ownerShift = 165_536

export type ImageDescription = {
  user: string
  workDir?: string
  env: Record<string, string>
  entrypoint?: string[]
}

export type Recipe = {
  sources: AptSources
  packages: readonly string[]
  /** Run with the root of the new system as `$1`, in this order. */
  steps: readonly string[]
  description: ImageDescription
}

const packages = [
  ...['python3', 'python3-pip', 'python3-venv', 'nodejs', 'git', 'curl', 'ca-certificates'],
  ...['procps', 'less', 'unzip', 'xz-utils'],
]

const user = 'daytona'
const home = `/home/${user}`

export const defaultRecipe = (sources: AptSources = sourcesOfThisHost()): Recipe => ({
  sources,
  packages,
  steps: [
    `chroot "$1" useradd --create-home --home-dir ${home} --shell /bin/bash --uid 1000 --user-group ${user}`,
    // The sandbox is the environment: pip may install where Debian would ask for one more.
    'printf "[global]\\nbreak-system-packages = true\\n" > "$1/etc/pip.conf"',
    // What belongs to the machine that builds.
    ': > "$1/etc/machine-id"; : > "$1/etc/resolv.conf"; echo sandbox > "$1/etc/hostname"',
    'printf "127.0.0.1 localhost\\n" > "$1/etc/hosts"; chmod 644 "$1/etc/hosts" "$1/etc/hostname" "$1/etc/resolv.conf"',
    'rm -rf "$1"/var/cache/ldconfig/* "$1"/var/log/apt/* "$1"/var/log/*.log',
  ],
  description: {
    user,
    workDir: home,
    env: {
      LANG: 'C.UTF-8',
      PATH: `/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:${home}/.local/bin`,
    },
  },
})

export const recipeHash = (recipe: Recipe): string =>
  createHash('sha256')
    .update(JSON.stringify([recipe, mmdebstrapOptions, ownerShift, process.arch]))
    .digest('hex')
    .slice(0, 16)

const leftOut = ['man', 'doc', 'locale', 'info', 'lintian']

const mmdebstrapOptions = [
  '--variant=minbase',
  '--mode=root',
  '--format=tar',
  '--verbose',
  ...leftOut.map((name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`),
  // Nothing here has to survive a power cut: a build that ends early is thrown away as a whole.
  '--dpkgopt=force-unsafe-io',
]

/** The command that writes the new system as a tar stream to its standard output, with ids not yet shifted. */
export const mmdebstrapCommand = ({ sources, packages: wanted, steps }: Recipe): string[] => [
  'mmdebstrap',
  ...mmdebstrapOptions,
  `--include=${wanted.join(',')}`,
  ...steps.map((step) => `--customize-hook=${step}`),
  sources.suite,
  '-',
  ...sources.lines,
]
