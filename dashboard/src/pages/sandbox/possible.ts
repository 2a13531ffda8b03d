// Defines for each state of a sandbox which actions its page offers. sandboxes/actions.ts does this for the list of sandboxes.
import type { SandboxState } from '../../api/client.ts'

const atRest: readonly SandboxState[] = ['started', 'stopped', 'paused']

/**
 * Whether a sandbox in this state can be forked, copied to a snapshot, resized or archived. A sandbox that is changing, archived or
 * failed cannot.
 */
export const isAtRest = (state: SandboxState): boolean => atRest.includes(state)
