import { useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import type { SandboxState } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { CheckField, TextField } from '../../ui/field.tsx'
import { activeFilters, type ListSearch, readLabels } from './search.ts'

/** The states that the filter offers. The other states, such as `starting`, last only for a short time. */
const states: readonly SandboxState[] = [
  'started',
  'stopped',
  'paused',
  'archived',
  'error',
  'creating',
  'build_failed',
]

const filterNames: Record<keyof ListSearch, string> = {
  id: 'Id',
  name: 'Name',
  labels: 'Labels',
  states: 'State',
  snapshots: 'Snapshot',
  regionIds: 'Region',
  sandboxClasses: 'Class',
  minCpu: 'CPU from',
  maxCpu: 'CPU up to',
  minMemoryGiB: 'Memory from',
  maxMemoryGiB: 'Memory up to',
  minDiskGiB: 'Disk from',
  maxDiskGiB: 'Disk up to',
  lastEventAfter: 'Active after',
  lastEventBefore: 'Active before',
  createdAtAfter: 'Created after',
  createdAtBefore: 'Created before',
  autoDestroyAtAfter: 'Ends after',
  autoDestroyAtBefore: 'Ends before',
  includeErroredDeleted: 'With failed deletions',
  includeWarm: 'With warm ones',
  isPublic: 'Public previews',
  isRecoverable: 'Recoverable',
  sort: 'Order',
  order: 'Order',
}

/** A text field for a name. The filter changes only when the reader stops typing for a moment or presses Enter. */
const NameField = ({ value, onChange }: { value: string; onChange: (name: string) => void }) => {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  useEffect(() => {
    if (text === value) return
    const timer = setTimeout(() => onChange(text), 300)
    return () => clearTimeout(timer)
  }, [text, value, onChange])
  return (
    <input
      className="input"
      type="search"
      aria-label="Name"
      placeholder="Name begins with…"
      value={text}
      onChange={(event) => setText(event.target.value)}
    />
  )
}

const splitList = (text: string): string[] =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')

/** Turns the value of a date field, which has no time zone, into the ISO time that the API takes. */
const isoOf = (local: string): string => (Number.isNaN(Date.parse(local)) ? '' : new Date(local).toISOString())
const localOf = (iso: string | undefined): string => {
  if (iso === undefined || Number.isNaN(Date.parse(iso))) return ''
  const date = new Date(iso)
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

const MoreFilters = ({
  search,
  onChange,
  onClose,
}: {
  search: ListSearch
  onChange: (search: ListSearch) => void
  onClose: () => void
}) => {
  const [draft, setDraft] = useState(search)
  const set = (name: keyof ListSearch, value: unknown) => {
    const { [name]: _, ...rest } = draft
    const isEmpty = value === '' || value === undefined || (Array.isArray(value) && value.length === 0)
    setDraft(isEmpty ? rest : ({ ...rest, [name]: value } as ListSearch))
  }
  const text = (name: 'id' | 'labels', hint?: string) => (
    <TextField label={filterNames[name]} hint={hint} value={draft[name] ?? ''} onChange={(value) => set(name, value)} />
  )
  const list = (name: 'snapshots' | 'regionIds') => (
    <TextField
      label={filterNames[name]}
      hint="Several values, separated by commas"
      value={(draft[name] ?? []).join(', ')}
      onChange={(value) => set(name, splitList(value))}
    />
  )
  const number = (
    name: 'minCpu' | 'maxCpu' | 'minMemoryGiB' | 'maxMemoryGiB' | 'minDiskGiB' | 'maxDiskGiB',
    unit: string,
  ) => (
    <TextField
      label={`${filterNames[name]} (${unit})`}
      type="number"
      min={1}
      value={String(draft[name] ?? '')}
      onChange={(value) => set(name, value === '' ? undefined : Number(value))}
    />
  )
  const date = (
    name:
      | 'lastEventAfter'
      | 'lastEventBefore'
      | 'createdAtAfter'
      | 'createdAtBefore'
      | 'autoDestroyAtAfter'
      | 'autoDestroyAtBefore',
  ) => (
    <TextField
      label={filterNames[name]}
      type="datetime-local"
      value={localOf(draft[name])}
      onChange={(value) => set(name, isoOf(value))}
    />
  )
  const flag = (name: 'isPublic' | 'isRecoverable' | 'includeWarm' | 'includeErroredDeleted') => (
    <CheckField
      label={filterNames[name]}
      checked={draft[name] === true}
      onChange={(checked) => set(name, checked ? true : undefined)}
    />
  )
  const areLabelsWrong = draft.labels !== undefined && readLabels(draft.labels) === undefined
  return (
    <Dialog title="Filters" isOpen onClose={onClose} isWide>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault()
          onChange(draft)
          onClose()
        }}
      >
        <div className="filter-grid">
          {text('id')}
          {text('labels', areLabelsWrong ? 'Write labels as key=value, with commas between' : 'key=value, other=value')}
          {list('snapshots')}
          {list('regionIds')}
          {number('minCpu', 'cores')}
          {number('maxCpu', 'cores')}
          {number('minMemoryGiB', 'GiB')}
          {number('maxMemoryGiB', 'GiB')}
          {number('minDiskGiB', 'GiB')}
          {number('maxDiskGiB', 'GiB')}
          {date('lastEventAfter')}
          {date('lastEventBefore')}
          {date('createdAtAfter')}
          {date('createdAtBefore')}
          {date('autoDestroyAtAfter')}
          {date('autoDestroyAtBefore')}
        </div>
        <div className="row">
          {flag('isPublic')}
          {flag('isRecoverable')}
          {flag('includeWarm')}
          {flag('includeErroredDeleted')}
        </div>
        <div className="dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" disabled={areLabelsWrong}>
            Show
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

const shown = (value: unknown): string =>
  value === true ? '' : Array.isArray(value) ? value.join(', ') : String(value)

/** The filters of the list. They are in the page's address, so the reader can save or send that address. */
export const Filters = ({ search }: { search: ListSearch }) => {
  const navigate = useNavigate()
  const [isOpen, setOpen] = useState(false)
  const change = (next: ListSearch) => void navigate({ to: '/sandboxes', search: next, replace: true })
  const without = (name: keyof ListSearch) => {
    const { [name]: _, ...rest } = search
    return rest
  }
  const toggleState = (state: SandboxState) => {
    const chosen = search.states ?? []
    const next = chosen.includes(state) ? chosen.filter((each) => each !== state) : [...chosen, state]
    change({ ...without('states'), ...(next.length > 0 && { states: next }) })
  }
  return (
    <div className="stack" style={{ gap: 8 }}>
      <div className="filters">
        <NameField
          value={search.name ?? ''}
          onChange={(name) => change({ ...without('name'), ...(name !== '' && { name }) })}
        />
        {states.map((state) => (
          <Button
            key={state}
            compact
            aria-pressed={search.states?.includes(state) ?? false}
            kind={search.states?.includes(state) ? 'primary' : undefined}
            onClick={() => toggleState(state)}
          >
            {state.replaceAll('_', ' ')}
          </Button>
        ))}
        <Button compact onClick={() => setOpen(true)}>
          More filters…
        </Button>
      </div>
      {activeFilters(search).some((name) => name !== 'states' && name !== 'name') && (
        <div className="filters">
          {activeFilters(search)
            .filter((name) => name !== 'states' && name !== 'name')
            .map((name) => (
              <span key={name} className="chip">
                <span className="cut">
                  {filterNames[name]} {shown(search[name])}
                </span>
                <button
                  type="button"
                  aria-label={`Remove the filter ${filterNames[name]}`}
                  onClick={() => change(without(name))}
                >
                  ×
                </button>
              </span>
            ))}
        </div>
      )}
      {isOpen && <MoreFilters search={search} onChange={change} onClose={() => setOpen(false)} />}
    </div>
  )
}
