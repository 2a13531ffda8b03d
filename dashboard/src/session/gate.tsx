import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useEffect, useSyncExternalStore } from 'react'
import { answerOf, control } from '../api/client.ts'
import { Button } from '../ui/button.tsx'
import { ErrorNotice } from '../ui/error-notice.tsx'
import { session } from './session.ts'
import { useSessionState } from './use-session.ts'

/**
 * Messages for a failed sign-in at an organization's identity provider. The parameter `error` in the page's address names the
 * message.
 */
const ssoErrors: Record<string, string> = {
  missing_email: 'The identity provider did not send an e-mail address.',
  email_not_verified: 'The identity provider has not verified this e-mail address.',
  domain_not_allowed: 'Addresses of this domain may not sign in to this organization.',
  provider_disabled: 'This identity provider is switched off.',
  link_pending:
    'An account with this address already exists. Sign in to it, and confirm the new sign-in under “Your account”.',
  link_refused: 'The owner of the account has refused this way of signing in.',
  access_denied: 'Signing in was refused.',
  invalid_state: 'This sign-in was started in another browser, or took too long. Start again.',
  invalid_response: 'The identity provider sent an invalid answer.',
  provider_unavailable: 'The identity provider cannot be reached.',
}

/**
 * The message for an error code in the page's address. An unknown code is shown only if it is a short word, because anybody can
 * make a link with any text.
 */
const sentenceOf = (code = ''): string =>
  Object.hasOwn(ssoErrors, code)
    ? ssoErrors[code]!
    : `Signing in failed${/^[a-z_]{1,40}$/.test(code) ? ` (${code})` : ''}.`

const Failed = ({ reason, code }: { reason: string; code?: string | undefined }) => (
  <div className="gate-page">
    <div className="card">
      <div className="card-body">
        <h1>You are not signed in</h1>
        <div className="notice danger" role="alert">
          {reason || sentenceOf(code)}
        </div>
        <Button kind="primary" onClick={() => void session.signIn()}>
          Sign in
        </Button>
      </div>
    </div>
  </div>
)

/**
 * Chooses the tab's first organization: the one that the user chose last or, if there is none, the personal one. A user without
 * either gets the first organization of the list.
 */
const WithOrganization = ({ children }: { children: ReactNode }) => {
  const chosen = useSyncExternalStore(session.subscribe, () => session.organizationId)
  const query = useQuery({ queryKey: ['organizations'], queryFn: () => answerOf(control.GET('/organizations')) })
  const isKnown = query.data?.some(({ id }) => id === chosen)
  const first = query.data?.find(({ personal }) => personal) ?? query.data?.[0]
  useEffect(() => {
    if (query.data !== undefined && !isKnown && first !== undefined) session.organizationId = first.id
  }, [query.data, isKnown, first])
  if (isKnown) return children
  return (
    <div className="gate-page">
      {query.error === null ? (
        <div className="waiting">Loading…</div>
      ) : (
        <ErrorNotice error={query.error} retry={() => void query.refetch()} />
      )}
    </div>
  )
}

/** Draws the pages only after a user has signed in. */
export const SessionGate = ({ children }: { children: ReactNode }) => {
  const state = useSessionState()
  if (state.name === 'failed') return <Failed reason={state.reason} code={state.code} />
  if (state.name === 'opening') return <div className="waiting">Signing in…</div>
  return <WithOrganization>{children}</WithOrganization>
}
