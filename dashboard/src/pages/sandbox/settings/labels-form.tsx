import { useMemo } from 'react'
import { answerOf, control, type Sandbox } from '../../../api/client.ts'
import { Button, IconButton } from '../../../ui/button.tsx'
import { Icon } from '../../../ui/icons.tsx'
import { useChange } from '../use-change.ts'
import { addRow, labelsOf, rowsOf, rowsProblem } from './label-rows.ts'
import { SettingForm } from './setting-card.tsx'
import { useDraft } from './use-draft.ts'

export const LabelsForm = ({ sandbox }: { sandbox: Sandbox }) => {
  const saved = useMemo(() => rowsOf(sandbox.labels), [sandbox.labels])
  const { value: rows, set, discard, isDirty, isStale } = useDraft(saved)
  const { change } = useChange(sandbox.id)
  const edit = (id: number, part: { key?: string; value?: string }) =>
    set(rows.map((row) => (row.id === id ? { ...row, ...part } : row)))
  const save = () =>
    change(
      answerOf(
        control.PUT('/sandbox/{sandboxIdOrName}/labels', {
          params: { path: { sandboxIdOrName: sandbox.id } },
          body: { labels: labelsOf(rows) },
        } as never),
      ),
    )
  return (
    <SettingForm
      title="Labels"
      hint="Keys and values. You can filter the list of sandboxes by labels."
      isDirty={isDirty}
      isStale={isStale}
      problem={rowsProblem(rows)}
      onSave={save}
      onDiscard={discard}
    >
      {rows.length === 0 && <div className="muted">This sandbox has no labels.</div>}
      {rows.map(({ id, key, value }, index) => (
        <div key={id} className="label-row">
          <input
            className="input mono"
            aria-label={`Key of label ${index + 1}`}
            placeholder="key"
            spellCheck={false}
            value={key}
            onChange={(event) => edit(id, { key: event.target.value })}
          />
          <input
            className="input"
            aria-label={`Value of label ${index + 1}`}
            placeholder="value"
            value={value}
            onChange={(event) => edit(id, { value: event.target.value })}
          />
          <IconButton
            kind="quiet"
            label={`Remove label ${index + 1}`}
            onClick={() => set(rows.filter((row) => row.id !== id))}
          >
            <Icon name="close" />
          </IconButton>
        </div>
      ))}
      <div>
        <Button compact onClick={() => set(addRow(rows))}>
          Add a label
        </Button>
      </div>
    </SettingForm>
  )
}
