import { answerOf, control, type Sandbox } from '../../../api/client.ts'
import { TextField } from '../../../ui/field.tsx'
import { isAtRest } from '../possible.ts'
import { useChange } from '../use-change.ts'
import { SettingForm } from './setting-card.tsx'
import { useDraft } from './use-draft.ts'

const fields = [
  { name: 'cpu', label: 'CPUs' },
  { name: 'memory', label: 'Memory in GiB' },
  { name: 'disk', label: 'Disk in GiB' },
] as const

const isWhole = (text: string) => /^[1-9]\d{0,5}$/.test(text)

/** Changes the processors, memory and disk of a sandbox. The server refuses impossible changes, such as a smaller disk. */
export const SizeForm = ({ sandbox }: { sandbox: Sandbox }) => {
  const saved = { cpu: String(sandbox.cpu), memory: String(sandbox.memory), disk: String(sandbox.disk) }
  const { value, set, discard, isDirty, isStale } = useDraft(saved)
  const { change } = useChange(sandbox.id)
  const changed = fields.filter(({ name }) => value[name] !== saved[name])
  const save = () =>
    change(
      answerOf(
        control.POST('/sandbox/{sandboxIdOrName}/resize', {
          params: { path: { sandboxIdOrName: sandbox.id } },
          body: Object.fromEntries(changed.map(({ name }) => [name, Number(value[name])])),
        } as never),
      ),
    )
  const problem = fields.every(({ name }) => isWhole(value[name]))
    ? isAtRest(sandbox.state)
      ? undefined
      : `A sandbox that is ${sandbox.state.replaceAll('_', ' ')} cannot be resized.`
    : 'Each limit must be a whole number.'
  return (
    <SettingForm
      title="Size"
      hint="A running sandbox can be resized too. The new size must hold what the sandbox uses now. A disk can only grow."
      isDirty={isDirty}
      isStale={isStale}
      problem={problem}
      onSave={save}
      onDiscard={discard}
    >
      <div className="setting-grid">
        {fields.map(({ name, label }) => (
          <TextField
            key={name}
            label={label}
            inputMode="numeric"
            error={isWhole(value[name]) ? undefined : 'A whole number'}
            value={value[name]}
            onChange={(text) => set({ ...value, [name]: text.trim() })}
          />
        ))}
      </div>
    </SettingForm>
  )
}
