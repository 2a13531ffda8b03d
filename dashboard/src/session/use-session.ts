import { useSyncExternalStore } from 'react'
import { type SessionState, session } from './session.ts'

export const useSessionState = (): SessionState => useSyncExternalStore(session.subscribe, session.snapshot)

/** The organization on which this tab acts. A page is drawn only once it is known. */
export const useOrganizationId = (): string => {
  const id = useSyncExternalStore(session.subscribe, () => session.organizationId)
  if (id === undefined) throw new Error('no organization is chosen yet')
  return id
}
