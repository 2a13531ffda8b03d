// The recipe contains all that determines the default image. The recipe's hash is in the cached image's file name, so an old file
// is never used for a changed recipe.
import { createHash } from 'node:crypto'
import { type AptSources, sourcesOfThisHost } from './apt-sources.ts'
import { headersFor, type NodePackage, nodePackages, nodeSteps } from './node-packages.ts'

/** Number that is added to each file's user id and group id when the image is made. A sandbox sees the ids without this shift. */
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
  /**
   * Files that `steps` copy from Alcove's node_modules. The files are listed so that the recipe's hash changes with their content.
   */
  nodePackages: readonly NodePackage[]
  /** Scripts of the build, in the order in which they run. `$1` is the root directory of the image. */
  steps: readonly string[]
  description: ImageDescription
}

/**
 * The basic Debian packages that the build of the default image installs. The array `packages` contains these packages and more.
 */
const basicPackages = [
  'python3',
  'python3-pip',
  'python3-venv',
  'git',
  'curl',
  'ca-certificates',
  'procps',
  'less',
  'unzip',
  'xz-utils',
]

const packages = [
  ...basicPackages,
  // `python3-pylsp` is the language server of `createLspServer('python')`.
  ...['python-is-python3', 'python3-dev', 'python3-pylsp', 'python3-numpy', 'python3-pandas', 'python3-matplotlib'],
  // Matplotlib needs this set of font packages or one that includes SciPy, Boost and a compiler.
  ...['python3-munkres', 'python3-defcon', 'python3-unicodedata2'],
  ...[
    'git-lfs',
    'openssh-client',
    'openssh-sftp-server',
    'wget',
    'jq',
    'ripgrep',
    'file',
    'zip',
    'bzip2',
    'rsync',
    'vim-tiny',
  ],
  ...['make', 'gcc', 'g++', 'libc6-dev', 'libatomic1', 'zsh', 'locales', 'tzdata'],
]

const user = 'daytona'
const home = `/home/${user}`

/** The version of uv that is installed from PyPI, with the checksums of its wheels for x86_64 and arm64. */
export const uv = {
  version: '0.9.5',
  sha256: [
    '6507bbbcd788553ec4ad5a96fa19364dc0f58b023e31d79868773559a83ec181',
    '48a3542835d37882ff57d1ff91b757085525d98756712fa61cf9941d3dda8ebf',
  ],
}

/** Line that the build prints if uv is missing in the image. */
export const withoutUv = 'the default image has no uv, because PyPI could not be reached'

/** The step that installs uv. If PyPI cannot be reached, the build prints a line and the image has no uv. */
export const uvStep = ({ version, sha256 }: typeof uv): string =>
  [
    `printf '%s' 'uv==${version}${sha256.map((sum) => ` --hash=sha256:${sum}`).join('')}' > "$1/tmp/uv.txt"`,
    'cp /etc/ssl/certs/ca-certificates.crt "$1/tmp/ca.crt"',
    'PIP_CERT=/tmp/ca.crt chroot "$1" pip install --quiet --root-user-action=ignore --no-cache-dir --no-deps --only-binary=:all: --require-hashes --retries 1 --timeout 15 -r /tmp/uv.txt' +
      ` || echo 'alcove: ${withoutUv}' >&2`,
    'rm -f "$1/tmp/uv.txt" "$1/tmp/ca.crt"',
  ].join('; ')

/**
 * Debian's `.profile` puts the user's directories before the caller's PATH. This step moves `~/bin` to the end of PATH.
 * `~/.local/bin` is in the image's PATH already.
 */
export const keepPathStep =
  'sed -i -e \'/-d .$HOME\\/\\.local\\/bin/,/^fi/d\' -e \'s|=.$HOME/bin:$PATH.|="$PATH:$HOME/bin"|\' "$1/etc/skel/.profile"'

const addUser = [
  `chroot "$1" useradd --create-home --home-dir ${home} --shell /bin/bash --uid 1000 --user-group ${user}`,
  `chroot "$1" install -d -o ${user} -g ${user} ${home}/.local ${home}/.local/bin`,
]

/** Lets pip install outside of a virtual environment, which Debian forbids by default. A sandbox needs no virtual environment. */
const configurePip = 'printf "[global]\\nbreak-system-packages = true\\n" > "$1/etc/pip.conf"'

/** Empties or replaces files that describe the machine on which the image is built. */
const forgetBuilder = [
  ': > "$1/etc/machine-id"; : > "$1/etc/resolv.conf"; echo sandbox > "$1/etc/hostname"',
  'printf "127.0.0.1 localhost\\n" > "$1/etc/hosts"; chmod 644 "$1/etc/hosts" "$1/etc/hostname" "$1/etc/resolv.conf"',
  'rm -rf "$1"/var/cache/ldconfig/* "$1"/var/log/apt/* "$1"/var/log/*.log',
]

const description: ImageDescription = {
  user,
  workDir: home,
  env: {
    LANG: 'C.UTF-8',
    PATH: `${home}/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
  },
}

export const defaultRecipe = (sources: AptSources = sourcesOfThisHost()): Recipe => ({
  sources,
  packages,
  nodePackages: nodePackages(),
  steps: [
    keepPathStep,
    ...addUser,
    configurePip,
    uvStep(uv),
    ...nodeSteps,
    ...headersFor(user, home),
    'echo "en_US.UTF-8 UTF-8" >> "$1/etc/locale.gen"; chroot "$1" locale-gen >&2',
    // An empty `.zshrc` prevents the questionnaire with which zsh greets a new user.
    `chroot "$1" install -o ${user} -g ${user} -m 644 /dev/null ${home}/.zshrc`,
    ...forgetBuilder,
  ],
  description,
})

export const recipeHash = (recipe: Recipe): string =>
  createHash('sha256')
    .update(JSON.stringify([recipe, mmdebstrapOptions, ownerShift, process.arch]))
    .digest('hex')
    .slice(0, 16)

/**
 * Path of the tests of Python packages. The image omits these tests: the tests of NumPy, pandas and SymPy alone are 5,000 files.
 */
const pythonTests = '/usr/lib/python3/dist-packages/*/tests/*'

/**
 * Keeps Debian's packages from compiling their Python files. Debian's `py3compile` would use only one processor, and look for test
 * files that the image omits. The step `compilePython` compiles all files at the end.
 */
const compileLater = [
  'chroot "$1" dpkg-divert --local --quiet --rename --divert /usr/bin/py3compile.later --add /usr/bin/py3compile',
  'ln -s /bin/true "$1/usr/bin/py3compile"',
].join(' && ')

/**
 * Restores the program `py3compile`, and deletes the rule that omits Python tests. Then compiles all Python files. Packages that a
 * user installs later are compiled as usual and have their tests.
 */
const compilePython = [
  'rm "$1/usr/bin/py3compile" && chroot "$1" dpkg-divert --local --quiet --rename --remove /usr/bin/py3compile',
  `sed -i '\\|^path-exclude=${pythonTests.replaceAll('*', '[*]')}|d' "$1/etc/dpkg/dpkg.cfg.d/99mmdebstrap"`,
  // Some packages contain files for other versions of Python, and such files cannot be compiled. Errors of the compilation are
  // ignored.
  `chroot "$1" sh -c 'find /usr/lib/python3/dist-packages /usr/share/python3 -name "*.py" -print0 | xargs -0 -n 300 -P "$(nproc)" python3 -m compileall -q' >&2 || true`,
]

const leftOut = ['man', 'doc', 'locale', 'info', 'lintian', 'unicode']

const mmdebstrapOptions = [
  '--variant=minbase',
  '--mode=root',
  '--format=tar',
  '--verbose',
  ...leftOut.map((name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`),
  '--dpkgopt=path-include=/usr/share/locale/locale.alias',
  // Nothing is synced to the disk during the build, because the runner discards all files of a build that a power cut has
  // interrupted.
  '--dpkgopt=force-unsafe-io',
  `--dpkgopt=path-exclude=${pythonTests}`,
  `--essential-hook=${compileLater}`,
  ...compilePython.map((step) => `--customize-hook=${step}`),
]

/** Returns the command that writes the image as a tar stream to standard output. In the stream, root is user 0. */
export const mmdebstrapCommand = ({ sources, packages: wanted, steps }: Recipe): string[] => [
  'mmdebstrap',
  ...mmdebstrapOptions,
  `--include=${wanted.join(',')}`,
  ...steps.map((step) => `--customize-hook=${step}`),
  sources.suite,
  '-',
  ...sources.lines,
]
