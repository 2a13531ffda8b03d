// Uses mmdebstrap to make an OCI image with a complete Debian (or Ubuntu) system. Tests use this image as the base image of
// Dockerfiles.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { endWithUs } from '#src/runner/images/end-with-us.ts'
import { defaultRecipe, mmdebstrapCommand } from '#src/runner/images/recipe.ts'
import { makeImage } from '#src/runner/images/testing/oci-image.ts'

/**
 * Directory with the image's files for later test runs. The files are made anew each month, to contain the distribution's current
 * packages.
 */
const stored = '/var/cache/alcove-tests'

const pathOf = (command: readonly string[]) => {
  const month = new Date().toISOString().slice(0, 7)
  const key = createHash('sha256')
    .update(JSON.stringify([command, month]))
    .digest('hex')
    .slice(0, 16)
  return join(stored, `debian-${key}.tar`)
}

/** Stores the tar of the Debian system for later test runs, and removes the tar that an earlier test run has stored. */
const store = (path: string, tar: Buffer) => {
  mkdirSync(stored, { recursive: true, mode: 0o700 })
  for (const name of readdirSync(stored)) rmSync(join(stored, name), { recursive: true, force: true })
  const unfinished = mkdtempSync(join(stored, 'unfinished-'))
  // The tar gets its final name only when it is complete, so that no test run uses an incomplete tar.
  writeFileSync(join(unfinished, 'tar'), tar)
  renameSync(join(unfinished, 'tar'), path)
  rmSync(unfinished, { recursive: true })
}

/** Returns a tar with the files of a minimal system with `packages`. The system is of the distribution that this host has. */
const filesOf = async (packages: readonly string[]): Promise<Buffer> => {
  const command = mmdebstrapCommand({ ...defaultRecipe(), packages, steps: [] })
  const path = pathOf(command)
  if (existsSync(path)) return readFileSync(path)
  const [program = '', ...args] = endWithUs(command)
  const { stdout } = await promisify(execFile)(program, args, { encoding: 'buffer', maxBuffer: 2 ** 30 })
  store(path, stdout)
  return stdout
}

/**
 * Makes an image of a minimal Debian or Ubuntu with these packages. Takes about 30 seconds if no earlier run has stored the files.
 */
export const makeDebianImage = async (packages: readonly string[]) =>
  makeImage({ layers: [await filesOf(packages)], layerKind: 'layer.v1.tar+zstd', config: { Cmd: ['bash'] } })
