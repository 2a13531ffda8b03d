import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { answerOf, control } from '../../api/client.ts'
import type { Organization } from '../../session/people.ts'
import { CheckField } from '../../ui/field.tsx'
import { toastError } from '../../ui/toast.tsx'

type Switch = { label: string; hint: string; isOn: boolean; turn: (isOn: boolean) => Promise<unknown> }

/** Switches of the organization that only an operator of the server can change. Other users only see the state of the switches. */
export const Switches = ({ organization, isOperator }: { organization: Organization; isOperator: boolean }) => {
  const queries = useQueryClient()
  const [busy, setBusy] = useState<string>()
  const params = { path: { organizationId: organization.id } }
  const switches: Switch[] = [
    {
      label: 'New sandboxes have no network access',
      hint: 'Unless a sandbox is created with other network settings.',
      isOn: organization.sandboxLimitedNetworkEgress,
      turn: (isOn) =>
        answerOf(
          control.POST('/organizations/{organizationId}/sandbox-default-limited-network-egress', {
            params,
            body: { sandboxDefaultLimitedNetworkEgress: isOn },
          } as never),
        ),
    },
    {
      label: 'Visitors of previews see a warning first',
      hint: 'A warning page says that the preview comes from a sandbox, not from this server.',
      isOn: organization.previewWarningEnabled,
      turn: (isOn) =>
        answerOf(
          control.POST('/organizations/{organizationId}/preview-warning', {
            params,
            body: { previewWarningEnabled: isOn },
          } as never),
        ),
    },
  ]
  const turn = async ({ label, turn: call }: Switch, isOn: boolean) => {
    setBusy(label)
    try {
      await call(isOn)
      await queries.invalidateQueries({ queryKey: ['organizations'] })
    } catch (error) {
      toastError(`“${label}” could not be changed`, error)
    } finally {
      setBusy(undefined)
    }
  }
  return (
    <section className="card" aria-label="Network and previews">
      <div className="card-head">
        <h2>Network and previews</h2>
      </div>
      <div className="card-body">
        {switches.map((each) => (
          <div key={each.label}>
            {isOperator ? (
              <CheckField
                label={each.label}
                checked={each.isOn}
                disabled={busy !== undefined}
                onChange={(isOn) => void turn(each, isOn)}
              />
            ) : (
              <div className="row spread">
                <span>{each.label}</span>
                <span className={each.isOn ? 'badge ok' : 'badge'}>{each.isOn ? 'On' : 'Off'}</span>
              </div>
            )}
            <div className="muted small">{each.hint}</div>
          </div>
        ))}
        {!isOperator && <p className="muted small">Only the operator of the server can change these settings.</p>}
      </div>
    </section>
  )
}
