import { useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback, useEffect } from 'react'
import type { Sandbox } from '../../../api/client.ts'
import { Button } from '../../../ui/button.tsx'
import { WhenLoaded } from '../../../ui/page.tsx'
import { toastError } from '../../../ui/toast.tsx'
import { NotRunning } from '../not-running.tsx'
import { Browser } from './browser.tsx'
import { Crumbs } from './crumbs.tsx'
import { download } from './file-calls.ts'
import { FileView } from './file-view.tsx'
import { parentOf } from './paths.ts'
import { sendFile } from './send-file.ts'
import { UploadPanel } from './upload-panel.tsx'
import { Uploads } from './uploads.ts'
import { useDirectory } from './use-files.ts'
import './files.css'

const uploadsOf = new Map<string, Uploads>()

/** Returns the uploads of a sandbox. They continue while the user looks at other pages. */
const findUploads = (sandbox: Sandbox): Uploads => {
  const uploads = uploadsOf.get(sandbox.id) ?? new Uploads(sandbox, sendFile)
  uploadsOf.set(sandbox.id, uploads)
  return uploads
}

type Place = { path?: string | undefined; file?: string | undefined }

const textOf = (value: unknown) => (typeof value === 'string' && value.startsWith('/') ? value : undefined)

/** The tab with the files of a sandbox. The page's address says which directory and which file are open. */
const FilesTab = ({ sandbox }: { sandbox: Sandbox }) => {
  const search = useSearch({ strict: false }) as Record<string, unknown>
  const [path, file] = [textOf(search['path']), textOf(search['file'])]
  const navigate = useNavigate()
  const { directory, query, changed } = useDirectory(sandbox, path)
  const uploads = findUploads(sandbox)
  useEffect(() => {
    uploads.onArrived = () => void changed()
    return () => {
      uploads.onArrived = () => {}
    }
  })
  const go = useCallback(
    (place: Place) =>
      void navigate({
        to: '/sandboxes/$sandboxId/$tab',
        params: { sandboxId: sandbox.id, tab: 'files' },
        search: place as never,
      }),
    [navigate, sandbox.id],
  )
  const openDirectory = useCallback((to: string) => go({ path: to }), [go])
  const isRunning = sandbox.state === 'started'
  return (
    <div className="stack">
      {!isRunning && <NotRunning sandbox={sandbox} needs="Files can be shown only while the sandbox is running." />}
      <UploadPanel uploads={uploads} />
      {(isRunning || file !== undefined) && (
        <>
          {(file ?? directory) !== undefined && (
            <Crumbs path={(file ?? directory)!} onOpen={(to) => (to === file ? undefined : openDirectory(to))} />
          )}
          {file !== undefined && (
            <>
              <div className="row">
                <Button compact onClick={() => openDirectory(parentOf(file))}>
                  Back to the directory
                </Button>
                <Button
                  compact
                  onClick={() => download(sandbox, file).catch((error) => toastError('Downloading failed', error))}
                >
                  Download
                </Button>
              </div>
              <FileView
                key={file}
                sandbox={sandbox}
                path={file}
                onDownload={() => download(sandbox, file).catch((error) => toastError('Downloading failed', error))}
                onDirectory={openDirectory}
                onSaved={() => void changed()}
              />
            </>
          )}
          {file === undefined && directory === undefined && <WhenLoaded query={query}>{() => null}</WhenLoaded>}
          {file === undefined && directory !== undefined && (
            <Browser
              sandbox={sandbox}
              directory={directory}
              query={query}
              uploads={uploads}
              onDirectory={openDirectory}
              onFile={(to) => go({ path: directory, file: to })}
              onChanged={() => void changed()}
            />
          )}
        </>
      )}
    </div>
  )
}

export default FilesTab
