// Computes the names of an image in the mirrors of its registry. The registry itself gets a request only if no mirror has the
// image.
import type { Mirror } from '#src/kit/registry-mirrors.ts'
import type { Reference } from './reference.ts'

const hostOf = ({ location }: Mirror) => location.split('/')[0] as string

/** Returns the name that an image has in each mirror of its registry. */
export const mirrored = (reference: Reference, mirrors: readonly Mirror[]): Reference[] =>
  mirrors
    .filter(({ registry }) => registry === reference.registry)
    .map((mirror) => {
      const path = mirror.location.split('/').slice(1)
      return { ...reference, registry: hostOf(mirror), repository: [...path, reference.repository].join('/') }
    })
