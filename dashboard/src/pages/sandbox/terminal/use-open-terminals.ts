import { useEffect, useState } from 'react'
import { loadTerminals, mostTerminals, newTerminal, type OpenTerminal, storeTerminals } from './open-terminals.ts'

/**
 * The terminals that this page shows, also after a reload. If there is no terminal when the page opens, the page begins with a new
 * one.
 */
export const useOpenTerminals = (sandboxId: string) => {
  const [open, setOpen] = useState<OpenTerminal[]>(() => {
    const loaded = loadTerminals(sandboxId)
    return loaded.length === 0 ? [newTerminal([])] : loaded
  })
  const [shown, setShown] = useState(open[0]?.id)
  // The terminals that were shown at least once. A terminal connects only when it is first shown.
  const [seen, setSeen] = useState<ReadonlySet<string>>(() => new Set(shown === undefined ? [] : [shown]))
  useEffect(() => storeTerminals(sandboxId, open), [sandboxId, open])

  const show = (id: string | undefined) => {
    setShown(id)
    if (id !== undefined) setSeen((before) => new Set(before).add(id))
  }
  const change = (id: string, part: Partial<OpenTerminal>) =>
    setOpen((before) => before.map((each) => (each.id === id ? { ...each, ...part } : each)))
  const add = (terminal: OpenTerminal) => {
    if (open.length >= mostTerminals) return
    setOpen([...open, terminal])
    show(terminal.id)
  }
  return {
    open,
    shown,
    seen,
    show,
    rename: (id: string, name: string) => change(id, { name }),
    made: (id: string) => change(id, { isNew: false }),
    addNew: () => add(newTerminal(open)),
    /** Opens a tab for a PTY session that exists already. */
    addExisting: (id: string) => add({ id, name: id.slice(0, 60), isNew: false }),
    /** Replaces a terminal that has ended by a new one of the same name. */
    replace: (old: OpenTerminal) => {
      const fresh = newTerminal(open, old.name)
      setOpen(open.map((each) => (each.id === old.id ? fresh : each)))
      show(fresh.id)
    },
    remove: (id: string) => {
      const rest = open.filter((each) => each.id !== id)
      setOpen(rest)
      if (shown === id) show(rest.at(-1)?.id)
    },
  }
}
