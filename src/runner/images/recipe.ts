// The recipe of the default image. It contains everything that decides the content, and its hash names the result. So the same
// recipe is built once per machine, and a changed recipe never reuses an old image.
import { createHash } from 'node:crypto'
import { type AptSources, sourcesOfThisHost } from './apt-sources.ts'

/** Ids in the image are stored with this offset, once, because every sandbox maps its root to this id. */
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
  /** Scripts that run in this order with the root of the new system as `$1`. */
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
    // Allows pip to install without a virtual environment, which Debian would refuse.
    'printf "[global]\\nbreak-system-packages = true\\n" > "$1/etc/pip.conf"',
    // Removes what belongs to the building machine.
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
  // No file has to survive a power cut: an interrupted build is discarded as a whole.
  '--dpkgopt=force-unsafe-io',
]

/** The command that writes the new system as a tar stream to standard output, with ids not shifted yet. */
export const mmdebstrapCommand = ({ sources, packages: wanted, steps }: Recipe): string[] => [
  'mmdebstrap',
  ...mmdebstrapOptions,
  `--include=${wanted.join(',')}`,
  ...steps.map((step) => `--customize-hook=${step}`),
  sources.suite,
  '-',
  ...sources.lines,
]
