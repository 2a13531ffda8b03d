// Reads the setting that names mirrors of image registries.

/**
 * A mirror: images of `registry` are pulled from `location` instead. The location is a host, perhaps with a port and a
 * path.
 */
export type Mirror = { registry: string; location: string }

const shape = /^[a-zA-Z0-9.-]+(?::\d{1,5})?=[a-zA-Z0-9.-]+(?::\d{1,5})?(?:\/[a-z0-9._-]+)*$/

export const mirrorsMeaning = 'mirrors of registries, such as docker.io=mirror.corp:5000/hub, separated by commas'

/**
 * Parses mirrors of image registries, such as `docker.io=mirror.corp:5000/hub`. Returns `undefined` if a mirror has the wrong
 * form.
 */
export const readMirrors = (names: readonly string[]): Mirror[] | undefined => {
  if (!names.every((name) => shape.test(name))) return undefined
  return names.map((name) => {
    const [registry = '', location = ''] = name.split('=')
    return { registry, location }
  })
}
