// Mirrors that the operator has put before a registry, such as a pull-through cache before Docker Hub. Mirrors are asked first,
// in their order. The registry itself is asked if no mirror has the image.
import type { Mirror } from '#src/kit/registry-mirrors.ts'
import type { Reference } from './reference.ts'

const hostOf = ({ location }: Mirror) => location.split('/')[0] as string

/** The names that an image has in the mirrors of its registry. */
export const mirrored = (reference: Reference, mirrors: readonly Mirror[]): Reference[] =>
  mirrors
    .filter(({ registry }) => registry === reference.registry)
    .map((mirror) => {
      const path = mirror.location.split('/').slice(1)
      return { ...reference, registry: hostOf(mirror), repository: [...path, reference.repository].join('/') }
    })
