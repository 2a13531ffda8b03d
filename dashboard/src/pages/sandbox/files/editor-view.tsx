import { useBlocker } from '@tanstack/react-router'
import { useCallback, useEffect, useRef, useState } from 'react'
import type { Sandbox } from '../../../api/client.ts'
import { ApiProblem } from '../../../api/problem.ts'
import type { FileInfo } from '../../../api/toolbox-client.ts'
import { Button } from '../../../ui/button.tsx'
import { Confirm } from '../../../ui/confirm.tsx'
import { ErrorNotice } from '../../../ui/error-notice.tsx'
import { shownName } from '../../../ui/shown-text.ts'
import { toast } from '../../../ui/toast.tsx'
import type { Editor } from './editor.ts'
import { describe, writeText } from './file-calls.ts'
import type { FileText } from './file-text.ts'
import { isSame } from './open-file.ts'
import { nameOf } from './paths.ts'

type EditorProps = { sandbox: Sandbox; path: string; info: FileInfo; text: FileText; onSaved: () => void }

/** Asks before unsaved text is lost because the reader opens another page or closes the browser's tab. */
const LeaveGuard = ({ isDirty, name }: { isDirty: boolean; name: string }) => {
  const blocker = useBlocker({
    shouldBlockFn: () => isDirty,
    enableBeforeUnload: () => isDirty,
    withResolver: true,
  })
  return (
    <Confirm
      title="Leave without saving?"
      verb="Discard changes"
      isOpen={blocker.status === 'blocked'}
      onClose={() => blocker.reset?.()}
      onConfirm={async () => blocker.proceed?.()}
    >
      <p className="wrap-anywhere">The changes to {shownName(name, 100)} are not saved.</p>
    </Confirm>
  )
}

/** Shows a text file in an editor that can save the file. */
export const EditorView = ({ sandbox, path, info, text, onSaved }: EditorProps) => {
  const box = useRef<HTMLDivElement>(null)
  const editor = useRef<Editor>(undefined)
  /** The text of the file and its properties (`FileInfo`), as they were when the file was last read or saved. */
  const saved = useRef<{ text: string; info: FileInfo }>({ text: text.text, info })
  const [isDirty, setDirty] = useState(false)
  const [isBusy, setBusy] = useState(false)
  const [hasConflict, setConflict] = useState(false)
  const [error, setError] = useState<unknown>()
  const name = nameOf(path)

  const write = useCallback(async () => {
    const written = editor.current!.text()
    await writeText(sandbox, path, written)
    saved.current = { text: written, info: await describe(sandbox, path) }
    setDirty(editor.current?.text() !== written)
    onSaved()
    toast('Saved', shownName(name, 100))
  }, [sandbox, path, name, onSaved])

  const save = useCallback(async () => {
    if (editor.current === undefined) return
    setBusy(true)
    setError(undefined)
    try {
      // Reads the properties of the file from the server: somebody else may have written or deleted the file since it was
      // opened.
      const now = await describe(sandbox, path).catch((caught: unknown) => {
        if (caught instanceof ApiProblem && caught.status === 404) return undefined
        throw caught
      })
      if (now === undefined || !isSame(saved.current.info, now)) setConflict(true)
      else await write()
    } catch (caught) {
      setError(caught)
    } finally {
      setBusy(false)
    }
  }, [sandbox, path, write])

  const latestSave = useRef(save)
  latestSave.current = save
  useEffect(() => {
    let isOver = false
    const start = async () => {
      const { openEditor, languageOf } = await import('./editor.ts')
      const language = await languageOf(name)
      if (isOver || box.current === null) return
      editor.current = openEditor(box.current, text, {
        name,
        language,
        onChange: () => setDirty(editor.current?.text() !== saved.current.text),
        onSave: () => void latestSave.current(),
      })
      // CodeMirror makes all line ends equal. So compare later with the text that the editor returns, not with the text that was
      // read.
      saved.current = { ...saved.current, text: editor.current.text() }
      editor.current.focus()
    }
    start().catch(setError)
    return () => {
      isOver = true
      editor.current?.dispose()
      editor.current = undefined
    }
  }, [text, name])

  return (
    <>
      <div className="row spread">
        <span className="muted small" role="status">
          {isDirty ? 'Not saved' : 'No changes'}
        </span>
        <Button kind="primary" disabled={!isDirty || isBusy} onClick={() => void save()}>
          {isBusy ? 'Saving…' : 'Save'}
        </Button>
      </div>
      {error !== undefined && <ErrorNotice error={error} />}
      <div ref={box} className="card editor-box" />
      <p className="muted small">Ctrl+S saves, Ctrl+F searches. Escape and then Tab leaves the editor.</p>
      <LeaveGuard isDirty={isDirty} name={name} />
      <Confirm
        title="The file has changed"
        verb="Overwrite"
        isOpen={hasConflict}
        onClose={() => setConflict(false)}
        onConfirm={write}
      >
        <p className="wrap-anywhere">
          Somebody has changed or deleted {shownName(name, 100)} since you opened it. If you overwrite the file, their
          changes are lost. If you cancel, your text stays here.
        </p>
      </Confirm>
    </>
  )
}
