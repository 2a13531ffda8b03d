import { useState } from 'react'
import { answerOf, control, type Sandbox } from '../../../api/client.ts'
import { TextField } from '../../../ui/field.tsx'
import { TimeAgo } from '../../../ui/time.tsx'
import { useChange } from '../use-change.ts'
import { minutesText } from '../words.ts'
import { SettingForm } from './setting-card.tsx'

const hintOf = (text: string): string | undefined => {
  if (text === '') return 'If you leave this empty, nothing changes.'
  if (text === '0') return 'The sandbox is never deleted because of its age.'
  return /^\d{1,9}$/.test(text)
    ? `The sandbox is deleted ${minutesText(Number(text))} from now, even if it is running.`
    : undefined
}

/** Sets the time to live of a sandbox. The time begins at the moment of saving. */
export const LifetimeForm = ({ sandbox }: { sandbox: Sandbox }) => {
  const [text, setText] = useState('')
  const { change } = useChange(sandbox.id)
  const hint = hintOf(text)
  const save = () =>
    change(
      answerOf(
        control.POST('/sandbox/{sandboxIdOrName}/ttl/{ttlMinutes}', {
          params: { path: { sandboxIdOrName: sandbox.id, ttlMinutes: text } },
        } as never),
      ),
    )
  return (
    <SettingForm
      title="Time to live"
      hint={
        sandbox.autoDestroyAt === undefined ? (
          'This sandbox has no fixed time of deletion.'
        ) : (
          <>
            This sandbox is deleted <TimeAgo time={sandbox.autoDestroyAt} />.
          </>
        )
      }
      isDirty={text !== ''}
      isStale={false}
      problem={hint === undefined ? 'A whole number of minutes; 0 means never.' : undefined}
      onSave={save}
      onDiscard={() => setText('')}
    >
      <TextField
        label="Delete this many minutes from now"
        hint={hint}
        inputMode="numeric"
        value={text}
        onChange={(given) => setText(given.trim())}
      />
    </SettingForm>
  )
}
