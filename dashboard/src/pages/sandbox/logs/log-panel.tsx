import { useMemo, useState } from 'react'
import type { Sandbox } from '../../../api/client.ts'
import { Button } from '../../../ui/button.tsx'
import { toastError } from '../../../ui/toast.tsx'
import { plainText } from './ansi-text.ts'
import { LogLines } from './log-lines.tsx'
import type { LogState } from './log-link.ts'
import { type LogSource, readLog, saveText } from './log-source.ts'
import { useLog } from './use-log.ts'

const stateTexts: Record<LogState['name'], string> = {
  connecting: 'Connecting…',
  following: 'Following',
  ended: 'The command has ended',
  waiting: 'Not connected',
}

/** Shows one log live. The reader can search and download the log. */
export const LogPanel = ({ sandbox, source, label }: { sandbox: Sandbox; source: LogSource; label: string }) => {
  const { lines, dropped, state } = useLog(sandbox, source)
  const [search, setSearch] = useState('')
  const [isSaving, setSaving] = useState(false)
  const shown = useMemo(() => {
    if (search === '') return lines
    const wanted = search.toLowerCase()
    return lines.filter(({ text }) => plainText(text).toLowerCase().includes(wanted))
  }, [lines, search])
  const save = async () => {
    setSaving(true)
    try {
      saveText(await readLog(sandbox, source), `${sandbox.name}.log`)
    } catch (error) {
      toastError('Downloading failed', error)
    } finally {
      setSaving(false)
    }
  }
  const isRunning = sandbox.state === 'started'
  return (
    <section className="card log-panel" aria-label={label}>
      <div className="row spread log-head">
        <input
          className="input"
          type="search"
          aria-label="Show only lines with"
          placeholder="Show only lines with…"
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
        <span className="row">
          <span className="muted small" role="status">
            {isRunning && stateTexts[state.name]}
          </span>
          <Button compact disabled={isSaving || !isRunning} onClick={() => void save()}>
            Download
          </Button>
        </span>
      </div>
      {state.name === 'waiting' && isRunning && (
        <div className="notice warn log-warning" role="status">
          {state.reason} This page tries again by itself.
        </div>
      )}
      {dropped > 0 && (
        <div className="muted small log-note">
          {dropped.toLocaleString('en')} older lines are not shown here. The download has what the server has kept: the
          last 16 MiB.
        </div>
      )}
      {search !== '' && (
        <div className="muted small log-note" role="status">
          {shown.length.toLocaleString('en')} of {lines.length.toLocaleString('en')} lines
        </div>
      )}
      {lines.length === 0 && (state.name === 'ended' || state.name === 'following') ? (
        <div className="waiting">
          {state.name === 'ended' ? 'Nothing was written.' : 'Nothing has been written yet.'}
        </div>
      ) : (
        <LogLines lines={shown} label={`Lines of ${label}`} />
      )}
    </section>
  )
}
