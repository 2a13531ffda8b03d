// Defines which actions of a sandbox's page are possible in which state. For the list of sandboxes, see sandboxes/actions.ts.
import type { SandboxState } from '../../api/client.ts'

const atRest: readonly SandboxState[] = ['started', 'stopped', 'paused']

/**
 * Whether a sandbox in this state can be forked, copied to a snapshot, resized or archived. It cannot while it changes to
 * another state.
 */
export const isAtRest = (state: SandboxState): boolean => atRest.includes(state)
