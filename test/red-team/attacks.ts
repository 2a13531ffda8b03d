// The table of attacks, which `alcove test --red-team` and the ordinary tests run.
import type { Attack } from './attack.ts'
import { attacksFromInside } from './inside.ts'
import { attacksFromOutside } from './outside.ts'
import { attacksOnSockets } from './sockets.ts'

const isOfResources = ({ boundary }: Attack) => boundary === 'sandbox → resources'

/** All attacks. Attacks on resources are last, because they leave a sandbox without resources for a moment. */
export const attacks: readonly Attack[] = [
  ...attacksFromInside.filter((attack) => !isOfResources(attack)),
  ...attacksFromOutside,
  ...attacksOnSockets,
  ...attacksFromInside.filter(isOfResources),
]
