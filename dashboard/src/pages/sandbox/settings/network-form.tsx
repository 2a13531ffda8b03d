import { useId } from 'react'
import { answerOf, control, type Sandbox } from '../../../api/client.ts'
import { TextArea } from '../../../ui/field.tsx'
import { useChange } from '../use-change.ts'
import { type NetworkMode, networkBody, networkProblem, readNetwork } from './network.ts'
import { SettingForm } from './setting-card.tsx'
import { useDraft } from './use-draft.ts'

const modes: readonly { mode: NetworkMode; label: string }[] = [
  { mode: 'open', label: 'Open: the sandbox reaches the Internet' },
  { mode: 'closed', label: 'Closed: the sandbox has no network access' },
  { mode: 'listed', label: 'Listed: the sandbox reaches only the domains and addresses below' },
]

export const NetworkForm = ({ sandbox }: { sandbox: Sandbox }) => {
  const { value, set, discard, isDirty, isStale } = useDraft(readNetwork(sandbox))
  const { change } = useChange(sandbox.id)
  const group = useId()
  const save = () =>
    change(
      answerOf(
        control.POST('/sandbox/{sandboxIdOrName}/network-settings', {
          params: { path: { sandboxIdOrName: sandbox.id } },
          body: networkBody(value),
        } as never),
      ),
    )
  return (
    <SettingForm
      title="Network"
      hint="The addresses that the sandbox may reach. A change applies immediately, also to open connections."
      isDirty={isDirty}
      isStale={isStale}
      problem={networkProblem(value)}
      onSave={save}
      onDiscard={discard}
    >
      <fieldset className="choices">
        <legend className="visually-hidden">Policy</legend>
        {modes.map(({ mode, label }) => (
          <label key={mode} className="check">
            <input type="radio" name={group} checked={value.mode === mode} onChange={() => set({ ...value, mode })} />
            <span>{label}</span>
          </label>
        ))}
      </fieldset>
      {value.mode === 'listed' && (
        <div className="setting-grid">
          <TextArea
            label="Domains"
            hint="One domain per line, at most 10. *.example.com means all names below example.com."
            spellCheck={false}
            value={value.domains}
            onChange={(domains) => set({ ...value, domains })}
          />
          <TextArea
            label="Addresses"
            hint="One IPv4 range per line, at most 10, such as 198.51.100.0/24."
            spellCheck={false}
            value={value.addresses}
            onChange={(addresses) => set({ ...value, addresses })}
          />
        </div>
      )}
    </SettingForm>
  )
}
