import { isSuspended } from '#src/control/organizations/organization.ts'
import { Problem } from '#src/problems.ts'
import type { Actor, SandboxParts } from './parts.ts'

/** A suspended organization reads, stops and deletes, and sets nothing going (contract/gaps.md C32). */
export const checkNotSuspended = ({ clock }: SandboxParts, { organization }: Actor): void => {
  if (isSuspended(organization, clock.now())) throw new Problem('forbidden', 'This organization is suspended.')
}
