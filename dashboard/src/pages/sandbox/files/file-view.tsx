import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import type { Sandbox } from '../../../api/client.ts'
import { useOrganizationId } from '../../../session/use-session.ts'
import { Button } from '../../../ui/button.tsx'
import { Empty, WhenLoaded } from '../../../ui/page.tsx'
import { sizeText } from '../../../ui/size-text.ts'
import { EditorView } from './editor-view.tsx'
import { type OpenedFile, openFile } from './open-file.ts'

type ViewProps = {
  sandbox: Sandbox
  path: string
  onDownload: () => void
  onDirectory: (path: string) => void
  onSaved: () => void
}

const NoText = ({ file, onDownload }: { file: OpenedFile; onDownload: () => void }) => (
  <Empty
    title={file.kind === 'large' ? 'This file is too large to edit here' : 'This file is not text'}
    action={
      <Button kind="primary" onClick={onDownload}>
        Download ({sizeText(file.info.size)})
      </Button>
    }
  >
    Text files up to 2 MiB can be edited here. All other files can only be downloaded.
  </Empty>
)

/** Shows the text of a file in an editor. For a file that is too large or not text, offers only a download. */
export const FileView = ({ sandbox, path, onDownload, onDirectory, onSaved }: ViewProps) => {
  const organizationId = useOrganizationId()
  const query = useQuery({
    queryKey: [organizationId, 'file', sandbox.id, path],
    queryFn: ({ signal }) => openFile(sandbox, path, signal),
    // Reads the file only once, when it is opened. A later reading would replace a text that is being edited.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    refetchOnMount: false,
  })
  const directory = query.data?.kind === 'directory' ? path : undefined
  useEffect(() => {
    if (directory !== undefined) onDirectory(directory)
  }, [directory, onDirectory])
  return (
    <WhenLoaded query={query}>
      {(file) => {
        if (file.kind === 'directory') return null
        if (file.kind !== 'text') return <NoText file={file} onDownload={onDownload} />
        return <EditorView sandbox={sandbox} path={path} info={file.info} text={file.text} onSaved={onSaved} />
      }}
    </WhenLoaded>
  )
}
