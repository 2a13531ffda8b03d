import { useEffect, useSyncExternalStore } from 'react'
import { Button } from '../../../ui/button.tsx'
import { ErrorNotice } from '../../../ui/error-notice.tsx'
import { shownName } from '../../../ui/shown-text.ts'
import { sizeText } from '../../../ui/size-text.ts'
import type { Upload, Uploads } from './uploads.ts'

/** How many failed files are listed by name at most. */
const longestList = 5

const sum = (all: readonly Upload[], of: (upload: Upload) => number) =>
  all.reduce((before, each) => before + of(each), 0)

/** Shows the progress of the uploads and which of them have failed. Draws nothing if there are no uploads. */
export const UploadPanel = ({ uploads }: { uploads: Uploads }) => {
  const all = useSyncExternalStore(uploads.subscribe, uploads.snapshot)
  const isBusy = all.some(({ state }) => state === 'waiting' || state === 'sending')
  useEffect(() => {
    if (!isBusy) return
    const warn = (event: BeforeUnloadEvent) => event.preventDefault()
    addEventListener('beforeunload', warn)
    return () => removeEventListener('beforeunload', warn)
  }, [isBusy])
  if (all.length === 0) return null
  const done = all.filter(({ state }) => state === 'done').length
  const failed = all.filter(({ state }) => state === 'failed')
  const cancelled = all.filter(({ state }) => state === 'cancelled').length
  const [sent, size] = [sum(all, (each) => each.sent), sum(all, (each) => each.size)]
  const current = all.find(({ state }) => state === 'sending')
  return (
    <section className="card upload-panel" aria-label="Uploads">
      <div className="row spread">
        <span role="status">
          {`${done} of ${all.length} ${all.length === 1 ? 'file' : 'files'} uploaded`}
          {cancelled > 0 && `, ${cancelled} cancelled`}
          {failed.length > 0 && `, ${failed.length} failed`}
        </span>
        {isBusy ? (
          <Button compact onClick={() => uploads.cancel()}>
            Cancel upload
          </Button>
        ) : (
          <Button compact kind="quiet" onClick={() => uploads.clear()}>
            Close
          </Button>
        )}
      </div>
      {isBusy && (
        <>
          <div className="progress">
            <span style={{ width: `${size === 0 ? 0 : Math.min(100, (100 * sent) / size)}%` }} />
          </div>
          <div className="muted small cut">
            {sizeText(sent)} of {sizeText(size)} {current !== undefined && `· ${shownName(current.path, 200)}`}
          </div>
        </>
      )}
      {failed.slice(0, longestList).map(({ id, path, error }) => (
        <div key={id}>
          <div className="small wrap-anywhere">{shownName(path, 300)}</div>
          <ErrorNotice error={error} />
        </div>
      ))}
    </section>
  )
}
