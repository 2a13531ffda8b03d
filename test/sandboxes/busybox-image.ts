// An OCI image with only busybox, so that tests need no image from a public registry.
import { existsSync, readFileSync } from 'node:fs'
import { makeImage, type TarEntry, tarOf } from '#src/runner/images/testing/oci-image.ts'

const busybox = '/bin/busybox'
const applets = ['sh', 'cat', 'ls', 'echo', 'mkdir', 'stat', 'md5sum', 'readlink', 'sleep']

/** The reason to skip a test if this machine has no busybox for the image, and otherwise false. */
export const noBusybox = existsSync(busybox) ? false : 'needs busybox-static'

export const makeBusyboxImage = (config: Record<string, unknown> = {}) => {
  const entries: TarEntry[] = [
    { path: 'bin', type: '5' },
    { path: 'bin/busybox', content: readFileSync(busybox), mode: 0o755 },
    ...applets.map((name): TarEntry => ({ path: `bin/${name}`, type: '2', target: 'busybox' })),
    { path: 'etc', type: '5' },
    { path: 'etc/motto', content: 'small\n' },
  ]
  return makeImage({
    layers: [tarOf(entries)],
    config: { Env: ['PATH=/bin', 'FROM_IMAGE=yes'], User: '0', ...config },
  })
}
