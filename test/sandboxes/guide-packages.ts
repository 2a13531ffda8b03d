// Downloads the programs that tests of docs/guides need, such as npm packages and web servers, into a directory that git ignores.
// They are not installed on this machine: npm packages take hundreds of megabytes, and Debian's web servers would start.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { waitForLock } from '#src/kit/lock.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { checkout } from './guide.ts'

const store = join(checkout, '.alcove/guide-packages')
const npm = join(checkout, 'node_modules/npm/bin/npm-cli.js')
const installMs = 300_000

const keyOf = (content: string | Buffer) => createHash('sha256').update(content).digest('hex').slice(0, 16)

/**
 * Returns the directory `name/key` below `store`. If this directory does not exist, `make` fills it, and all other directories in
 * `name` are removed.
 */
const stored = async (name: string, key: string, make: (target: string) => Promise<void>): Promise<string> => {
  const directory = join(store, name)
  const target = join(directory, key)
  await mkdir(directory, { recursive: true })
  using _lock = await waitForLock(join(store, `${name}.lock`), { timeoutMs: installMs })
  if (!existsSync(target)) {
    for (const former of await readdir(directory)) await rm(join(directory, former), { recursive: true, force: true })
    console.log(`Fetching ${name} for the guides …`)
    const draft = `${target}.draft`
    await mkdir(draft)
    await make(draft)
    await rename(draft, target)
  }
  return target
}

/** Installs the packages of `examples/NAME` and returns the path of their `node_modules`. */
export const installGuidePackages = (name: string): Promise<string> => installPackagesOf(name, `examples/${name}`)

/**
 * Installs the packages of the `package.json` in `directory`, and returns the path of their `node_modules`. The packages are stored
 * under `name`, and installed again only if the lock file changes.
 */
export const installPackagesOf = async (name: string, directory: string): Promise<string> => {
  const manifest = join(checkout, directory)
  const lock = await readFile(join(manifest, 'package-lock.json'))
  const target = await stored(name, keyOf(lock), async (draft) => {
    for (const file of ['package.json', 'package-lock.json', '.npmrc']) {
      if (existsSync(join(manifest, file))) await copyFile(join(manifest, file), join(draft, file))
    }
    const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier', '--prefix', draft]
    const env = { ...process.env, PATH: `${join(process.execPath, '..')}:${process.env['PATH']}` }
    await runCommand([process.execPath, npm, 'ci', ...options], { env, timeoutMs: installMs })
  })
  return join(target, 'node_modules')
}

const download = async (directory: string, packages: readonly string[]) => {
  const line = `cd '${directory}' && apt-get download -q ${packages.join(' ')}`
  await runCommand(['sh', '-c', `${line} || { apt-get update -q && ${line}; }`], { timeoutMs: installMs })
}

/**
 * Returns a directory with the files of Debian packages, in the places that they would have below `/`. The packages' scripts do not
 * run.
 */
export const unpackDebianPackages = (name: string, packages: readonly [string, ...string[]]): Promise<string> =>
  stored(name, keyOf(packages.join(' ')), async (draft) => {
    await download(draft, packages)
    for (const file of await readdir(draft)) {
      await runCommand(['dpkg-deb', '--extract', join(draft, file), draft])
      await rm(join(draft, file))
    }
  })
