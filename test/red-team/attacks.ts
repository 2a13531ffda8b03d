// All attacks. `alcove test --red-team` and test/sandboxes/red-team.test.ts run them.
import type { Attack } from './attack.ts'
import { attacksFromInside } from './inside.ts'
import { attacksFromOutside } from './outside.ts'
import { attacksOnSockets } from './sockets.ts'

const isOfResources = ({ boundary }: Attack) => boundary === 'sandbox → resources'

/** All attacks in their order. Attacks on resources are last, because a sandbox needs a moment to recover from them. */
export const attacks: readonly Attack[] = [
  ...attacksFromInside.filter((attack) => !isOfResources(attack)),
  ...attacksFromOutside,
  ...attacksOnSockets,
  ...attacksFromInside.filter(isOfResources),
]
