// Installs the packages that the programs of a guide need. They have hundreds of megabytes, so they are no dependencies
// of Alcove. A directory of `examples/` has their `package.json` and `package-lock.json`.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { waitForLock } from '#src/kit/lock.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { checkout } from './guide.ts'

const store = join(checkout, '.alcove/guide-packages')
const npm = join(checkout, 'node_modules/npm/bin/npm-cli.js')
const installSeconds = 300

const install = async (manifest: string, target: string) => {
  const draft = `${target}.draft`
  await rm(draft, { recursive: true, force: true })
  await mkdir(draft, { recursive: true })
  for (const file of ['package.json', 'package-lock.json']) await copyFile(join(manifest, file), join(draft, file))
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier', '--prefix', draft]
  const env = { ...process.env, PATH: `${join(process.execPath, '..')}:${process.env['PATH']}` }
  await runCommand([process.execPath, npm, 'ci', ...options], { env, timeoutMs: installSeconds * 1000 })
  await rename(draft, target)
}

/**
 * Returns the `node_modules` with the packages of `examples/NAME`. They are installed once for each version of the lock
 * file. If npm cannot install them, the test fails.
 */
export const installGuidePackages = async (name: string): Promise<string> => {
  const manifest = join(checkout, 'examples', name)
  const lock = await readFile(join(manifest, 'package-lock.json'))
  const key = createHash('sha256').update(lock).digest('hex').slice(0, 16)
  const directory = join(store, name)
  const target = join(directory, key)
  await mkdir(directory, { recursive: true })
  using _lock = await waitForLock(join(store, `${name}.lock`), { timeoutMs: installSeconds * 1000 })
  if (!existsSync(target)) {
    for (const former of await readdir(directory)) await rm(join(directory, former), { recursive: true, force: true })
    console.log(`Installing the packages of examples/${name} …`)
    await install(manifest, target)
  }
  return join(target, 'node_modules')
}
