import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { answerOf, apiUrl, control } from '../../api/client.ts'
import { ApiProblem } from '../../api/problem.ts'
import { useIsOperator, useOrganization, useStanding } from '../../session/people.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { Button } from '../../ui/button.tsx'
import { CodeBlock } from '../../ui/copy.tsx'
import { CheckField } from '../../ui/field.tsx'
import { Empty, Page, WhenLoaded } from '../../ui/page.tsx'
import { toastError } from '../../ui/toast.tsx'
import { ProviderDialog } from './provider-dialog.tsx'
import type { Provider } from './provider-form.ts'
import { ProviderTable, signInLink } from './provider-table.tsx'

const Addresses = ({ organizationId }: { organizationId: string }) => (
  <section className="card" aria-label="Addresses">
    <div className="card-body">
      <h2>Sign-in link of the organization</h2>
      <CodeBlock code={signInLink(organizationId)} label="Copy the sign-in link" />
      <h2>Redirect address, to register at the provider</h2>
      <CodeBlock code={`${apiUrl}/auth/sso/callback`} label="Copy the redirect address" />
    </div>
  </section>
)

/**
 * A switch with which an operator turns single sign-on for the organization on or off. Other users only see whether it is
 * on.
 */
const Switch = ({ isOn, isOperator }: { isOn: boolean; isOperator: boolean }) => {
  const organizationId = useOrganizationId()
  const queries = useQueryClient()
  const [isBusy, setBusy] = useState(false)
  const turn = async (ssoEnabled: boolean) => {
    setBusy(true)
    try {
      await answerOf(
        control.POST('/organizations/{organizationId}/sso-enabled', {
          params: { path: { organizationId } },
          body: { ssoEnabled },
        } as never),
      )
      await queries.invalidateQueries({ queryKey: ['organizations'] })
      await queries.invalidateQueries({ queryKey: [organizationId, 'identity-providers'] })
    } catch (error) {
      toastError('Single sign-on could not be switched on or off', error)
    } finally {
      setBusy(false)
    }
  }
  if (!isOperator) return null
  return (
    <div className="card card-body">
      <CheckField
        label="This organization may use single sign-on (you can decide this as an operator of the server)"
        checked={isOn}
        disabled={isBusy}
        onChange={(next) => void turn(next)}
      />
    </div>
  )
}

const IdentityProvidersPage = () => {
  const organizationId = useOrganizationId()
  const organization = useOrganization()
  const standing = useStanding()
  const isOperator = useIsOperator()
  const queries = useQueryClient()
  const [isAdding, setAdding] = useState(false)
  const mayManage = standing?.holds('manage:sso') ?? false
  const isShared = organization?.personal === false
  const query = useQuery({
    queryKey: [organizationId, 'identity-providers'],
    enabled: mayManage && isShared,
    queryFn: () =>
      answerOf(
        control.GET('/organizations/{organizationId}/identity-providers', {
          params: { path: { organizationId } },
        } as never),
      ) as Promise<Provider[]>,
  })
  const changed = () => void queries.invalidateQueries({ queryKey: [organizationId, 'identity-providers'] })
  const isClosed = query.error instanceof ApiProblem && query.error.status === 403
  const addButton = (
    <Button kind="primary" onClick={() => setAdding(true)}>
      Add a provider
    </Button>
  )
  const content = () => {
    if (organization?.personal)
      return (
        <Empty title="A personal organization has no single sign-on">
          To let others sign in with their identity provider, make an organization in the menu of organizations.
        </Empty>
      )
    if (standing !== undefined && !mayManage)
      return (
        <Empty title="You may not manage single sign-on">
          An owner of the organization can give you the role SSO Admin on the page “Members”.
        </Empty>
      )
    if (isClosed)
      return (
        <Empty title="Single sign-on is not enabled for this organization">
          {isOperator ? 'Switch it on above.' : 'The operator of the server can enable it.'}
        </Empty>
      )
    return undefined
  }
  const empty = content()
  return (
    <Page
      title="Single sign-on"
      description="Members sign in at the organization’s own identity providers, with OpenID Connect."
      actions={empty === undefined && query.data !== undefined && query.data.length > 0 ? addButton : undefined}
    >
      {isShared && <Switch isOn={organization?.ssoEnabled ?? false} isOperator={isOperator} />}
      {empty !== undefined ? (
        <div className="card">{empty}</div>
      ) : (
        <>
          <WhenLoaded query={query}>
            {(providers) =>
              providers.length === 0 ? (
                <div className="card">
                  <Empty title="There is no identity provider yet" action={addButton}>
                    Register this server at your provider with the redirect address below, then add the provider here.
                  </Empty>
                </div>
              ) : (
                <ProviderTable providers={providers} onChanged={changed} />
              )
            }
          </WhenLoaded>
          <Addresses organizationId={organizationId} />
        </>
      )}
      {isAdding && <ProviderDialog onClose={() => setAdding(false)} onSaved={changed} />}
    </Page>
  )
}

export default IdentityProvidersPage
