// What can be asked of a sandbox in its state, beside the actions of lists.
import type { SandboxState } from '../../api/client.ts'

const atRest: readonly SandboxState[] = ['started', 'stopped', 'paused']

/** A fork, a snapshot, a resize and an archive need a sandbox that is not on its way to another state. */
export const isAtRest = (state: SandboxState): boolean => atRest.includes(state)
