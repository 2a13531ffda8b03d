import { moves, settlements, stateRows } from '#src/control/sandboxes/record/lifecycle.ts'
import { type SandboxState, sandboxStates } from '#src/wire/sandbox-state.ts'

/** States that a sandbox of this server can have. All other states exist only in the public API. */
const reachedStates = new Set<SandboxState>([
  ...moves.flatMap(([, , through, to]) => [through, to]),
  ...Object.values(settlements).flatMap((settlement) => Object.values(settlement)),
  ...Object.values(stateRows).flatMap(({ whenStuck }) =>
    whenStuck === null || whenStuck === 'retry' ? [] : [whenStuck],
  ),
])

export const statesInUse = sandboxStates.filter((state) => reachedStates.has(state))
