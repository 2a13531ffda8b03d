import { useState } from 'react'
import { answerOf, apiUrl, control } from '../../api/client.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { CopyText } from '../../ui/copy.tsx'
import { RowButtons, Table, wide } from '../../ui/table.tsx'
import { toast, toastError } from '../../ui/toast.tsx'
import { ProviderDialog } from './provider-dialog.tsx'
import type { Provider } from './provider-form.ts'

const path = '/organizations/{organizationId}/identity-providers/{id}'

/** The address at which members sign in. With `providerId`, it leads directly to that identity provider. */
export const signInLink = (organizationId: string, providerId?: string): string =>
  `${apiUrl}/auth/sso/org/${organizationId}${providerId === undefined ? '' : `?identityProviderId=${providerId}`}`

export const ProviderTable = ({ providers, onChanged }: { providers: readonly Provider[]; onChanged: () => void }) => {
  const organizationId = useOrganizationId()
  const [changing, setChanging] = useState<Provider>()
  const [deleting, setDeleting] = useState<Provider>()
  const [switching, setSwitching] = useState<string>()
  const paramsOf = (id: string) => ({ params: { path: { organizationId, id } } })
  const turn = async ({ id, name, enabled }: Provider) => {
    setSwitching(id)
    try {
      await answerOf(control.PATCH(path, { ...paramsOf(id), body: { enabled: !enabled } } as never))
      toast(enabled ? `Nobody can sign in with ${name} now` : `People can sign in with ${name} now`)
      onChanged()
    } catch (error) {
      toastError(`${name} could not be switched ${enabled ? 'off' : 'on'}`, error)
    } finally {
      setSwitching(undefined)
    }
  }
  const remove = async ({ id, name }: Provider) => {
    await answerOf(control.DELETE(path, paramsOf(id) as never))
    onChanged()
    toast(`${name} is deleted`)
  }
  return (
    <div className="card">
      <Table label="Identity providers" columns={['Provider', wide('Domains'), 'State']} rows={providers}>
        {(provider) => (
          <tr key={provider.id}>
            <td className="wrap-anywhere">
              <bdi>
                <strong>{provider.name}</strong>
              </bdi>
              <div className="muted small">{provider.oidcConfig.issuerUrl}</div>
              <CopyText text={signInLink(organizationId, provider.id)} shown="Copy its sign-in link" />
            </td>
            <td className="wide-only wrap-anywhere">
              {provider.allowAnyDomain ? 'Every domain' : provider.emailDomains.join(', ')}
            </td>
            <td>
              <span className={provider.enabled ? 'badge ok' : 'badge'}>{provider.enabled ? 'On' : 'Off'}</span>
            </td>
            <RowButtons>
              <Button
                compact
                disabled={switching === provider.id}
                aria-label={`Switch ${provider.name} ${provider.enabled ? 'off' : 'on'}`}
                onClick={() => void turn(provider)}
              >
                {provider.enabled ? 'Switch off' : 'Switch on'}
              </Button>
              <Button compact aria-label={`Change ${provider.name}`} onClick={() => setChanging(provider)}>
                Change…
              </Button>
              <Button
                compact
                kind="danger"
                aria-label={`Delete ${provider.name}`}
                onClick={() => setDeleting(provider)}
              >
                Delete
              </Button>
            </RowButtons>
          </tr>
        )}
      </Table>
      {changing !== undefined && (
        <ProviderDialog provider={changing} onClose={() => setChanging(undefined)} onSaved={onChanged} />
      )}
      <Confirm
        title="Delete this identity provider?"
        verb="Delete the provider"
        isOpen={deleting !== undefined}
        onClose={() => setDeleting(undefined)}
        onConfirm={() => remove(deleting!)}
      >
        <p>
          Nobody can sign in with <strong className="wrap-anywhere">{deleting?.name}</strong> any longer, and its links
          to accounts are deleted. Other providers can then use its domains. Members stay members.
        </p>
      </Confirm>
    </div>
  )
}
