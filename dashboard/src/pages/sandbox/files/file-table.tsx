import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { useRef } from 'react'
import type { FileInfo } from '../../../api/toolbox-client.ts'
import { Icon } from '../../../ui/icons.tsx'
import { MenuItem, MenuLine } from '../../../ui/menu.tsx'
import { RowMenu } from '../../../ui/row-menu.tsx'
import { shownName } from '../../../ui/shown-text.ts'
import { sizeText } from '../../../ui/size-text.ts'
import { TimeAgo } from '../../../ui/time.tsx'
import { isUnreachable, kindOf, type Sort } from './entries.ts'

const rowHeight = 38

export type EntryAction = 'download' | 'rename' | 'mode' | 'copy' | 'delete'

type TableProps = {
  entries: readonly FileInfo[]
  sort: Sort
  onSort: (sort: Sort) => void
  onOpen: (entry: FileInfo) => void
  onAction: (action: EntryAction, entry: FileInfo) => void
}

const columns = [
  { name: 'Name', by: 'name' },
  { name: 'Size', by: 'size' },
  { name: 'Changed', by: 'modifiedAt' },
] as const

const kindNames = { directory: 'Directory', file: 'File', link: 'Link', special: 'Special file' } as const

const SortHeaders = ({ sort, onSort }: Pick<TableProps, 'sort' | 'onSort'>) =>
  columns.map(({ name, by }) => {
    const isCurrent = sort.by === by
    const order = sort.isDescending ? 'descending' : 'ascending'
    return (
      <span key={by} role="columnheader" className={`col-${by}`} aria-sort={isCurrent ? order : undefined}>
        <button type="button" onClick={() => onSort({ by, isDescending: isCurrent && !sort.isDescending })}>
          {name} {isCurrent && <span aria-hidden="true">{sort.isDescending ? '↓' : '↑'}</span>}
        </button>
      </span>
    )
  })

const EntryMenu = ({ entry, name, onAction }: Pick<TableProps, 'onAction'> & { entry: FileInfo; name: string }) => (
  <RowMenu name={name}>
    {!entry.isDir && <MenuItem onSelect={() => onAction('download', entry)}>Download</MenuItem>}
    <MenuItem onSelect={() => onAction('copy', entry)}>Copy path</MenuItem>
    <MenuItem onSelect={() => onAction('rename', entry)}>Rename or move…</MenuItem>
    <MenuItem onSelect={() => onAction('mode', entry)}>Permissions…</MenuItem>
    <MenuLine />
    <MenuItem isDanger onSelect={() => onAction('delete', entry)}>
      Delete…
    </MenuItem>
  </RowMenu>
)

const Row = ({ entry, onOpen, onAction }: Pick<TableProps, 'onOpen' | 'onAction'> & { entry: FileInfo }) => {
  const kind = kindOf(entry)
  const name = shownName(entry.name)
  return (
    <>
      <span role="cell" className="col-name">
        <span className="muted kind">
          <Icon name={kind} />
        </span>
        {isUnreachable(entry) ? (
          <span className="cut muted" title="The name of this file is not valid text, so this page cannot open it.">
            {name}
          </span>
        ) : (
          <button type="button" className="cut" title={`${kindNames[kind]}: ${name}`} onClick={() => onOpen(entry)}>
            {name}
            {kind === 'directory' && '/'}
          </button>
        )}
      </span>
      <span role="cell" className="col-size">
        {kind === 'file' ? <span title={`${entry.size} bytes`}>{sizeText(entry.size)}</span> : ''}
      </span>
      <span role="cell" className="col-modifiedAt">
        <TimeAgo time={entry.modifiedAt} />
      </span>
      <span role="cell" className="col-mode mono" title={entry.permissions}>
        {entry.mode}
      </span>
      <span role="cell" className="col-owner cut">
        {shownName(`${entry.owner}:${entry.group}`, 80)}
      </span>
      <span role="cell">{!isUnreachable(entry) && <EntryMenu entry={entry} name={name} onAction={onAction} />}</span>
    </>
  )
}

/** The entries of a directory. Only the rows in view are drawn, so that a directory with 20,000 entries still scrolls well. */
export const FileTable = ({ entries, sort, onSort, ...rest }: TableProps) => {
  const list = useRef<HTMLDivElement>(null)
  const virtual = useWindowVirtualizer({
    count: entries.length,
    estimateSize: () => rowHeight,
    overscan: 15,
    scrollMargin: list.current?.offsetTop ?? 0,
  })
  return (
    <div className="card file-table" role="table" aria-label="Files" aria-rowcount={entries.length + 1}>
      <div className="file-row head" role="row">
        <SortHeaders sort={sort} onSort={onSort} />
        <span role="columnheader" className="col-mode">
          Permissions
        </span>
        <span role="columnheader" className="col-owner">
          Owner
        </span>
        <span role="columnheader">
          <span className="visually-hidden">Actions</span>
        </span>
      </div>
      <div ref={list} role="rowgroup" style={{ height: virtual.getTotalSize(), position: 'relative' }}>
        {virtual.getVirtualItems().map(({ index, start }) => (
          <div
            key={index}
            className="file-row"
            role="row"
            aria-rowindex={index + 2}
            style={{
              position: 'absolute',
              insetInline: 0,
              height: rowHeight,
              transform: `translateY(${start - virtual.options.scrollMargin}px)`,
            }}
          >
            <Row entry={entries[index]!} {...rest} />
          </div>
        ))}
      </div>
    </div>
  )
}
