import { useMemo, useState } from 'react'
import type { Sandbox } from '../../../api/client.ts'
import type { FileInfo } from '../../../api/toolbox-client.ts'
import { Confirm } from '../../../ui/confirm.tsx'
import { Empty, WhenLoaded } from '../../../ui/page.tsx'
import { shownName } from '../../../ui/shown-text.ts'
import { toast, toastError } from '../../../ui/toast.tsx'
import { copyText } from '../terminal/clipboard.ts'
import { DropZone } from './drop-zone.tsx'
import { type Dropped, mostDropped } from './dropped-files.ts'
import { kindOf, type Sort, shownEntries } from './entries.ts'
import { DeleteDialog, ModeDialog, MoveDialog, NewDialog } from './entry-dialogs.tsx'
import { describe, download, type Listing } from './file-calls.ts'
import { type EntryAction, FileTable } from './file-table.tsx'
import { SearchPanel } from './search-panel.tsx'
import { Toolbar } from './toolbar.tsx'
import type { Uploads } from './uploads.ts'

type Dialog = { name: 'rename' | 'mode' | 'delete'; entry: FileInfo } | { name: 'file' | 'directory' } | undefined

type BrowserProps = {
  sandbox: Sandbox
  directory: string
  query: { data: Listing | undefined; error: unknown; isPending: boolean; refetch: () => unknown }
  uploads: Uploads
  onDirectory: (path: string) => void
  onFile: (path: string) => void
  onChanged: () => void
}

const Entries = ({
  listing,
  ...rest
}: Omit<Parameters<typeof FileTable>[0], 'sort' | 'onSort' | 'entries'> & {
  listing: Listing
  areHiddenShown: boolean
}) => {
  const { areHiddenShown, ...table } = rest
  const [sort, setSort] = useState<Sort>({ by: 'name', isDescending: false })
  const entries = useMemo(
    () => shownEntries(listing.entries, { sort, areHiddenShown }),
    [listing, sort, areHiddenShown],
  )
  const hidden = listing.entries.length - entries.length
  return (
    <>
      {listing.isCut && (
        <div className="notice warn">
          Only {listing.entries.length.toLocaleString('en')} entries of this directory are listed. Use the search to
          find the other entries by name.
        </div>
      )}
      {entries.length === 0 ? (
        <Empty title={hidden === 0 ? 'This directory is empty' : `This directory has only hidden files (${hidden})`}>
          Drop files here, or create one.
        </Empty>
      ) : (
        <FileTable entries={entries} sort={sort} onSort={setSort} {...table} />
      )}
    </>
  )
}

/** Shows the entries of a directory, with buttons that upload, make, move and delete files. */
export const Browser = ({ sandbox, directory, query, uploads, onDirectory, onFile, onChanged }: BrowserProps) => {
  const [areHiddenShown, setHiddenShown] = useState(false)
  const [isSearching, setSearching] = useState(false)
  const [dialog, setDialog] = useState<Dialog>()
  const [asked, setAsked] = useState<{ files: Dropped[]; replaced: string[] }>()

  const upload = (files: Dropped[]) => {
    if (files.length > mostDropped) {
      toastError(
        'Too many files',
        new Error(`At most ${mostDropped} files are uploaded at once. Upload an archive instead.`),
      )
      return
    }
    const there = new Set(query.data?.entries.map(({ name }) => name))
    const replaced = [...new Set(files.map(({ path }) => path.split('/')[0]!))].filter((name) => there.has(name))
    if (replaced.length > 0) setAsked({ files, replaced })
    else uploads.add(directory, files)
  }
  const open = (entry: FileInfo) => {
    const kind = kindOf(entry)
    if (kind === 'directory') onDirectory(entry.path)
    else if (kind === 'special')
      toast('This is not a regular file', 'Sockets, pipes and devices cannot be opened here.')
    else if (kind === 'file') onFile(entry.path)
    else
      describe(sandbox, entry.path).then(
        ({ isDir }) => (isDir ? onDirectory(entry.path) : onFile(entry.path)),
        (error) => toastError('The link leads nowhere', error),
      )
  }
  const act = (action: EntryAction, entry: FileInfo) => {
    if (action === 'copy') void copyText(entry.path).then(() => toast('Path copied'))
    else if (action === 'download')
      download(sandbox, entry.path).catch((error) => toastError('Downloading failed', error))
    else setDialog({ name: action, entry })
  }
  const close = () => setDialog(undefined)
  const done = () => {
    close()
    onChanged()
  }
  const props = { sandbox, onClose: close, onDone: done }
  return (
    <DropZone onDrop={upload}>
      <Toolbar
        areHiddenShown={areHiddenShown}
        onHidden={setHiddenShown}
        onNew={(name) => setDialog({ name })}
        onUpload={upload}
        onSearch={() => setSearching(!isSearching)}
        onRefresh={() => void query.refetch()}
      />
      {isSearching && (
        <SearchPanel
          key={directory}
          sandbox={sandbox}
          directory={directory}
          onOpen={onFile}
          onClose={() => setSearching(false)}
        />
      )}
      <WhenLoaded query={query}>
        {(listing) => <Entries listing={listing} areHiddenShown={areHiddenShown} onOpen={open} onAction={act} />}
      </WhenLoaded>
      {dialog?.name === 'rename' && <MoveDialog {...props} entry={dialog.entry} />}
      {dialog?.name === 'mode' && <ModeDialog {...props} entry={dialog.entry} />}
      {dialog?.name === 'delete' && <DeleteDialog {...props} entry={dialog.entry} />}
      {(dialog?.name === 'file' || dialog?.name === 'directory') && (
        <NewDialog
          {...props}
          directory={directory}
          kind={dialog.name}
          onDone={(path) => {
            done()
            if (dialog.name === 'file' && path !== undefined) onFile(path)
          }}
        />
      )}
      <Confirm
        title="Replace existing files?"
        verb="Upload and replace"
        isOpen={asked !== undefined}
        onClose={() => setAsked(undefined)}
        onConfirm={async () => asked !== undefined && uploads.add(directory, asked.files)}
      >
        <p className="wrap-anywhere">
          This directory already has {asked?.replaced.length === 1 ? 'an entry' : `${asked?.replaced.length} entries`}{' '}
          with the same name: {shownName(asked?.replaced.slice(0, 5).join(', ') ?? '')}
          {(asked?.replaced.length ?? 0) > 5 && '…'}. Files with the same path are replaced.
        </p>
      </Confirm>
    </DropZone>
  )
}
