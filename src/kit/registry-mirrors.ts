// The setting that names mirrors of registries.

/**
 * A mirror: images of `registry` are pulled from `location`. The location is a host, perhaps with a port and a path.
 */
export type Mirror = { registry: string; location: string }

const shape = /^[a-zA-Z0-9.-]+(?::\d{1,5})?=[a-zA-Z0-9.-]+(?::\d{1,5})?(?:\/[a-z0-9._-]+)*$/

export const mirrorsMeaning = 'mirrors of registries, such as docker.io=mirror.corp:5000/hub, separated by commas'

/** Reads the mirrors from the setting. Returns `undefined` if one of them is invalid. */
export const readMirrors = (names: readonly string[]): Mirror[] | undefined => {
  if (!names.every((name) => shape.test(name))) return undefined
  return names.map((name) => {
    const [registry = '', location = ''] = name.split('=')
    return { registry, location }
  })
}
