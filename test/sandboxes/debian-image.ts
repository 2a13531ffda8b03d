// An OCI image with a complete Debian (or Ubuntu) system, which mmdebstrap makes. Tests use it as the base image of
// Dockerfiles.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { endWithUs } from '#src/runner/images/end-with-us.ts'
import { defaultRecipe, mmdebstrapCommand } from '#src/runner/images/recipe.ts'
import { makeImage } from '#src/runner/images/testing/oci-image.ts'

/**
 * Makes the image: a minimal system of the distribution that this host has, plus `packages`. This takes about 30
 * seconds.
 */
export const makeDebianImage = async (packages: readonly string[]) => {
  const [program = '', ...args] = endWithUs(mmdebstrapCommand({ ...defaultRecipe(), packages, steps: [] }))
  const { stdout } = await promisify(execFile)(program, args, { encoding: 'buffer', maxBuffer: 2 ** 30 })
  return makeImage({ layers: [stdout], layerKind: 'layer.v1.tar+zstd', config: { Cmd: ['bash'] } })
}
