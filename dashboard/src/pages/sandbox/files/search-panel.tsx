import { type FormEvent, useEffect, useRef, useState } from 'react'
import type { Sandbox } from '../../../api/client.ts'
import { Button } from '../../../ui/button.tsx'
import { ErrorNotice } from '../../../ui/error-notice.tsx'
import { shownName } from '../../../ui/shown-text.ts'
import { type Found, searchContents, searchNames } from './file-calls.ts'

const mostShown = 500

type PanelProps = { sandbox: Sandbox; directory: string; onOpen: (path: string) => void; onClose: () => void }
type State =
  | { name: 'idle' }
  | { name: 'searching' }
  | { name: 'found'; found: Found[] }
  | { name: 'failed'; error: unknown }

const Results = ({ found, onOpen }: { found: readonly Found[]; onOpen: (path: string) => void }) => (
  <>
    <div className="muted small" role="status">
      {found.length === 0 ? 'Nothing was found.' : `${found.length} found`}
      {found.length > mostShown && `; the first ${mostShown} are shown`}
    </div>
    <ul className="found">
      {found.slice(0, mostShown).map(({ path, line, content }) => (
        <li key={`${path}:${line}`}>
          <button type="button" className="wrap-anywhere" onClick={() => onOpen(path)}>
            {shownName(path, 400)}
            {line !== undefined && `:${line}`}
          </button>
          {content !== undefined && <code className="cut">{shownName(content.trim(), 300)}</code>}
        </li>
      ))}
    </ul>
  </>
)

/** Searches below a directory for files by their names, or for lines that contain a text. */
export const SearchPanel = ({ sandbox, directory, onOpen, onClose }: PanelProps) => {
  const [text, setText] = useState('')
  const [kind, setKind] = useState<'names' | 'contents'>('names')
  const [state, setState] = useState<State>({ name: 'idle' })
  const running = useRef<AbortController>(undefined)
  useEffect(() => () => running.current?.abort(), [])

  const run = async (event: FormEvent) => {
    event.preventDefault()
    if (text === '') return
    running.current?.abort()
    const controller = new AbortController()
    running.current = controller
    setState({ name: 'searching' })
    const search = kind === 'names' ? searchNames : searchContents
    try {
      const found = await search(sandbox, directory, text, controller.signal)
      if (!controller.signal.aborted) setState({ name: 'found', found })
    } catch (error) {
      if (!controller.signal.aborted) setState({ name: 'failed', error })
    }
  }
  const stop = () => {
    running.current?.abort()
    setState({ name: 'idle' })
  }
  return (
    <section className="card search-panel" aria-label="Search">
      <form className="row" onSubmit={(event) => void run(event)}>
        <input
          className="input"
          aria-label="Search for"
          placeholder={kind === 'names' ? 'Part of a name, or *.ts' : 'A text in a line'}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <select
          className="input"
          aria-label="Search in"
          value={kind}
          onChange={(event) => setKind(event.target.value as typeof kind)}
        >
          <option value="names">Names</option>
          <option value="contents">Contents</option>
        </select>
        <Button type="submit" kind="primary">
          Search
        </Button>
        <Button kind="quiet" onClick={state.name === 'searching' ? stop : onClose}>
          {state.name === 'searching' ? 'Stop' : 'Close'}
        </Button>
      </form>
      <div className="muted small cut">Below {shownName(directory, 300)}</div>
      {state.name === 'searching' && <div role="status">Searching…</div>}
      {state.name === 'failed' && <ErrorNotice error={state.error} />}
      {state.name === 'found' && <Results found={state.found} onOpen={onOpen} />}
    </section>
  )
}
