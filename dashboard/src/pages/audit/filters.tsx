import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useEffect, useId, useState } from 'react'
import { answerOf, control } from '../../api/client.ts'
import { useMembers } from '../../session/people.ts'
import { Button } from '../../ui/button.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { type AuditSearch, outcomes, wordsOf } from './search.ts'

/** How many e-mail addresses the field suggests at most. A longer list would slow the page. */
const mostOffered = 200

type Props = { search: AuditSearch; onChange: (search: AuditSearch) => void }

/** Returns the search with the filter `name` set to `value`, or without that filter if `value` is empty. */
const withFilter = (search: AuditSearch, name: keyof AuditSearch, value: string): AuditSearch => {
  const { [name]: _, ...rest } = search
  return value === '' ? rest : { ...rest, [name]: value }
}

/** A text field. Its text becomes a filter when the reader leaves the field or presses Enter. */
const TextFilter = ({
  label,
  value,
  list,
  onDone,
}: {
  label: string
  value: string
  list?: string | undefined
  onDone: (value: string) => void
}) => {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  const done = () => {
    if (text.trim() !== value) onDone(text.trim())
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    done()
  }
  return (
    <form onSubmit={submit}>
      <TextField label={label} value={text} onChange={setText} onBlur={done} list={list} maxLength={255} />
    </form>
  )
}

/** The filters of the audit log. Each filter is a query parameter of the page's address. */
export const Filters = ({ search, onChange }: Props) => {
  const listId = useId()
  const members = useMembers().data ?? []
  const scenarios = useQuery({
    queryKey: ['audit-scenarios'],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: () => answerOf(control.GET('/audit/scenarios')),
  })
  const targets = scenarios.data?.targets ?? []
  const actions = [
    ...new Set(
      targets
        .filter(({ targetType }) => search.targetType === undefined || targetType === search.targetType)
        .flatMap((target) => target.actions),
    ),
  ].toSorted()
  const options = (words: readonly string[], chosen: string | undefined, any: string) => [
    { value: '', label: any },
    ...[...new Set(chosen === undefined ? words : [...words, chosen])].map((word) => ({
      value: word,
      label: wordsOf(word),
    })),
  ]
  const set = (name: keyof AuditSearch) => (value: string) => onChange(withFilter(search, name, value))
  const isFiltered = Object.keys(search).some((name) => name !== 'server')
  return (
    <search className="card card-body" aria-label="Filters">
      <div className="audit-filters">
        <SelectField
          label="Target"
          value={search.targetType ?? ''}
          // When the reader chooses another kind of target, the filter for the action is removed, because each kind has its
          // own actions.
          onChange={(value) => onChange(withFilter(withFilter(search, 'action', ''), 'targetType', value))}
          options={options(
            targets.map(({ targetType }) => targetType),
            search.targetType,
            'Everything',
          )}
        />
        <SelectField
          label="Action"
          value={search.action ?? ''}
          onChange={set('action')}
          options={options(actions, search.action, 'Every action')}
        />
        <SelectField
          label="Outcome"
          value={search.outcome ?? ''}
          onChange={set('outcome')}
          options={[
            { value: '', label: 'Every outcome' },
            ...Object.entries(outcomes).map(([value, label]) => ({ value, label })),
          ]}
        />
        <TextFilter label="By (e-mail or id)" value={search.actor ?? ''} list={listId} onDone={set('actor')} />
        <TextFilter label="Target id or name" value={search.targetId ?? ''} onDone={set('targetId')} />
        <TextField label="After" type="datetime-local" value={search.after ?? ''} onChange={set('after')} />
        <TextField label="Before" type="datetime-local" value={search.before ?? ''} onChange={set('before')} />
      </div>
      <datalist id={listId}>
        {members.slice(0, mostOffered).map(({ userId, email }) => (
          <option key={userId} value={email} />
        ))}
      </datalist>
      {isFiltered && (
        <div>
          <Button compact onClick={() => onChange(search.server ? { server: true } : {})}>
            Remove all filters
          </Button>
        </div>
      )}
    </search>
  )
}
