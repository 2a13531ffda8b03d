import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type KeyboardEvent, useEffect, useId, useState } from 'react'
import { answerOf, control } from '../api/client.ts'
import { useOrganizationId } from '../session/use-session.ts'
import { Dialog } from '../ui/dialog.tsx'
import { groups } from './navigation.ts'

type Choice = { key: string; label: string; hint?: string | undefined; go: () => void }

/** Maximum number of sandboxes that the command palette shows. */
const mostSandboxes = 8

/** The command palette: the reader types a few letters to find a page or a sandbox. Ctrl+K or ⌘K opens it. */
export const Palette = ({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) => (
  <Dialog title="Go to" isOpen={isOpen} onClose={onClose}>
    <Search onClose={onClose} />
  </Dialog>
)

/** Focuses the field as soon as it exists, so that letters typed directly after Ctrl+K are not lost. */
const focus = (field: HTMLInputElement | null) => field?.focus()

/** The contents of the open palette. Each time the palette opens, the field is empty. */
const Search = ({ onClose }: { onClose: () => void }) => {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const listId = useId()
  const navigate = useNavigate()
  const organizationId = useOrganizationId()
  const found = useQuery({
    queryKey: [organizationId, 'palette', text],
    enabled: text.trim().length > 1,
    queryFn: ({ signal }) =>
      answerOf(
        control.GET('/sandbox', { params: { query: { name: text.trim(), limit: mostSandboxes } as never }, signal }),
      ),
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: after a change of the text the first result is selected
  useEffect(() => setAt(0), [text])

  const pages: Choice[] = [...groups.flatMap(({ items }) => items), { to: '/account' as const, label: 'Your account' }]
    .filter(({ label }) => label.toLowerCase().includes(text.trim().toLowerCase()))
    .map(({ to, label }) => ({ key: to, label, hint: 'Page', go: () => void navigate({ to }) }))
  const sandboxes: Choice[] = (found.data?.items ?? []).map(({ id, name, state }) => ({
    key: id,
    label: name,
    hint: state,
    go: () => void navigate({ to: '/sandboxes/$sandboxId', params: { sandboxId: id } }),
  }))
  const choices = [...sandboxes, ...pages]
  const choose = (choice: Choice | undefined) => {
    if (choice === undefined) return
    onClose()
    choice.go()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter') choose(choices[at])
    else if (event.key === 'ArrowDown') setAt((at + 1) % Math.max(choices.length, 1))
    else if (event.key === 'ArrowUp') setAt((at + choices.length - 1) % Math.max(choices.length, 1))
    else return
    event.preventDefault()
  }
  return (
    <>
      <input
        ref={focus}
        className="input"
        role="combobox"
        aria-label="Page or sandbox"
        aria-expanded="true"
        aria-controls={listId}
        aria-activedescendant={choices[at] && `${listId}-${at}`}
        placeholder="A page, or the beginning of a sandbox’s name"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <div className="palette-list" role="listbox" id={listId} aria-label="Choices">
        {choices.map((choice, index) => (
          <div
            key={choice.key}
            id={`${listId}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            className="palette-item row spread"
            onMouseEnter={() => setAt(index)}
            onClick={() => choose(choice)}
            onKeyDown={onKeyDown}
          >
            <span className="cut">{choice.label}</span>
            <span className="muted small">{choice.hint}</span>
          </div>
        ))}
        {choices.length === 0 && <div className="waiting">No page or sandbox has this name.</div>}
      </div>
    </>
  )
}
