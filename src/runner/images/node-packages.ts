// Copies Node and its programs from Alcove's own node_modules into the default image. The build need not download these packages,
// and npm has verified them already.
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

export const nodeModules = resolve(import.meta.dirname, '../../../node_modules')

export type NodePackage = { name: string; version: string; integrity: string }

/** Directory of OpenSSL's headers for this architecture. The headers for all architectures have 65 MB. */
const opensslDirectory = process.arch === 'arm64' ? 'linux-aarch64' : 'linux-x86_64'

const node = `node-linux-${process.arch}`
const esbuild = ['esbuild', `@esbuild/linux-${process.arch}`]
const names = [node, 'npm', 'corepack', 'tsx', ...esbuild]

type Lock = { packages: Record<string, { version?: string; integrity?: string } | undefined> }

/** Returns name, version and checksum of each package, from the lock file. */
export const nodePackages = (): NodePackage[] => {
  const lock = JSON.parse(readFileSync(join(nodeModules, '../package-lock.json'), 'utf8')) as Lock
  return names.map((name) => {
    const { version, integrity } = lock.packages[`node_modules/${name}`] ?? {}
    if (version === undefined || integrity === undefined) throw new Error(`package-lock.json has no ${name}`)
    return { name, version, integrity }
  })
}

const programs = {
  npm: 'npm/bin/npm-cli.js',
  npx: 'npm/bin/npx-cli.js',
  corepack: 'corepack/dist/corepack.js',
  tsx: 'tsx/dist/cli.mjs',
}

const copy = (name: string, to: string) => `cp -r "$NODE_MODULES/${name}" "$1/usr/local/lib/node_modules/${to}"`

/** Scripts that copy Node into an image. `$NODE_MODULES`: directory of Alcove's packages. `$1`: root directory of the image. */
export const nodeSteps: readonly string[] = [
  [
    'set -e; umask 022; mkdir -p "$1/usr/local/lib/node_modules/tsx/node_modules/@esbuild" "$1/usr/local/etc"',
    `cp "$NODE_MODULES/${node}/bin/node" "$1/usr/local/bin/node"`,
    `tar -C "$NODE_MODULES/${node}/include" --exclude=node/openssl/archs -c node | tar -C "$1/usr/local/include" --no-same-owner -x`,
    `mkdir "$1/usr/local/include/node/openssl/archs"`,
    `cp -r "$NODE_MODULES/${node}/include/node/openssl/archs/${opensslDirectory}" "$1/usr/local/include/node/openssl/archs/"`,
    ...['npm', 'corepack', 'tsx'].map((name) => copy(name, '')),
    ...esbuild.map((name) => copy(name, `tsx/node_modules/${name}`)),
    'rm -rf "$1"/usr/local/lib/node_modules/npm/docs "$1"/usr/local/lib/node_modules/npm/man',
    'chmod -R u+w,go-w,a+rX "$1/usr/local/lib/node_modules" "$1/usr/local/include/node" "$1/usr/local/bin/node"',
    'chmod +x "$1/usr/local/bin/node"',
    ...Object.entries(programs).map(
      ([name, path]) =>
        `chmod +x "$1/usr/local/lib/node_modules/${path}"; ln -s "../lib/node_modules/${path}" "$1/usr/local/bin/${name}"`,
    ),
  ].join('; '),
  // With this prefix, `npm install --global` installs into the user's home. For root, the next line sets the prefix `/usr/local`,
  // so root installs for all users.
  `printf '%s\\n' 'prefix=\${HOME}/.local' 'update-notifier=false' > "$1/usr/local/etc/npmrc"`,
  'printf "prefix=/usr/local\\n" > "$1/root/.npmrc"',
  // Install the commands `pnpm` and `yarn`. Each downloads its program at its first call.
  'chroot "$1" corepack enable',
]

/** Puts Node's headers where node-gyp expects them, so that node-gyp does not download them. */
export const headersFor = (user: string, home: string): string[] => {
  const gyp = `${home}/.cache/node-gyp`
  const ask = "require('/usr/local/lib/node_modules/npm/node_modules/node-gyp/package.json').installVersion"
  return [
    [
      `set -e; version="$(chroot "$1" node -p process.versions.node)"`,
      `chroot "$1" install -d -o ${user} -g ${user} ${home}/.cache ${gyp} "${gyp}/$version"`,
      `chroot "$1" node -p "${ask}" > "$1${gyp}/$version/installVersion"`,
      `ln -s /usr/local/include "$1${gyp}/$version/include"`,
    ].join('; '),
  ]
}
