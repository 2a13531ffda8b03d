import { useSyncExternalStore } from 'react'
import { type SessionState, session } from './session.ts'

export const useSessionState = (): SessionState => useSyncExternalStore(session.subscribe, session.snapshot)

/** The id of the organization that this tab shows. Pages are drawn only after it is known. */
export const useOrganizationId = (): string => {
  const id = useSyncExternalStore(session.subscribe, () => session.organizationId)
  if (id === undefined) throw new Error('no organization is chosen yet')
  return id
}
