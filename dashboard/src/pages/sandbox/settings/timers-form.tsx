import { answerOf, control, type Sandbox } from '../../../api/client.ts'
import { TextField } from '../../../ui/field.tsx'
import { useChange } from '../use-change.ts'
import { type TimerName, timerNames, timerText } from '../words.ts'
import { SettingForm } from './setting-card.tsx'
import { readTimer, type Timers, timerCalls } from './timers.ts'
import { useDraft } from './use-draft.ts'

const fields: Record<TimerName, { label: string; path: 'autostop' | 'autopause' | 'autoarchive' | 'autodelete' }> = {
  autoStopInterval: { label: 'Stop when idle', path: 'autostop' },
  autoPauseInterval: { label: 'Pause when idle', path: 'autopause' },
  autoArchiveInterval: { label: 'Archive after it stopped', path: 'autoarchive' },
  autoDeleteInterval: { label: 'Delete after it stopped', path: 'autodelete' },
}

const save = (sandboxId: string, name: TimerName, interval: number) =>
  answerOf(
    control.POST(`/sandbox/{sandboxIdOrName}/${fields[name].path}/{interval}`, {
      params: { path: { sandboxIdOrName: sandboxId, interval: String(interval) } },
    } as never),
  )

export const TimersForm = ({ sandbox }: { sandbox: Sandbox }) => {
  const saved = Object.fromEntries(timerNames.map((name) => [name, String(sandbox[name])])) as Timers
  const { value, set, discard, rebase, isDirty, isStale } = useDraft(saved)
  const { change } = useChange(sandbox.id)
  const isWrong = timerNames.some((name) => readTimer(name, value[name]) === undefined)
  const saveAll = async () => {
    let done = saved
    for (const { name, minutes } of timerCalls(saved, value)) {
      const record = await change(save(sandbox.id, name, minutes))
      done = { ...done, [name]: String(record[name]) }
      rebase(done)
    }
  }
  return (
    <SettingForm
      title="Timers"
      hint="In minutes. An idle sandbox either stops or pauses: set the timer that you do not want to 0."
      isDirty={isDirty}
      isStale={isStale}
      problem={isWrong ? 'Each timer must be a whole number of minutes.' : undefined}
      onSave={saveAll}
      onDiscard={discard}
    >
      <div className="setting-grid">
        {timerNames.map((name) => {
          const minutes = readTimer(name, value[name])
          return (
            <TextField
              key={name}
              label={fields[name].label}
              hint={minutes === undefined ? undefined : timerText[name](minutes)}
              error={minutes === undefined ? 'A whole number of minutes' : undefined}
              inputMode="numeric"
              value={value[name]}
              onChange={(text) => set({ ...value, [name]: text })}
            />
          )
        })}
      </div>
    </SettingForm>
  )
}
