import { useRef } from 'react'
import { Button } from '../../../ui/button.tsx'
import { CheckField } from '../../../ui/field.tsx'
import { Icon } from '../../../ui/icons.tsx'
import { Menu, MenuItem, MenuLine } from '../../../ui/menu.tsx'
import { chosenFiles, type Dropped } from './dropped-files.ts'

type ToolbarProps = {
  areHiddenShown: boolean
  onHidden: (areShown: boolean) => void
  onNew: (kind: 'file' | 'directory') => void
  onUpload: (files: Dropped[]) => void
  onSearch: () => void
  onRefresh: () => void
}

/** The buttons above a directory: new file, upload, search and others. */
export const Toolbar = ({ areHiddenShown, onHidden, onNew, onUpload, onSearch, onRefresh }: ToolbarProps) => {
  const files = useRef<HTMLInputElement>(null)
  const directory = useRef<HTMLInputElement>(null)
  const take = (input: HTMLInputElement) => {
    if (input.files !== null) onUpload(chosenFiles(input.files))
    // Clears the file field. Otherwise the browser would send no event if the user chooses the same file again.
    input.value = ''
  }
  return (
    <div className="row">
      <Menu
        trigger={
          <Button kind="primary">
            New <Icon name="down" />
          </Button>
        }
      >
        <MenuItem onSelect={() => onNew('file')}>File…</MenuItem>
        <MenuItem onSelect={() => onNew('directory')}>Directory…</MenuItem>
        <MenuLine />
        <MenuItem onSelect={() => files.current?.click()}>Upload files…</MenuItem>
        <MenuItem onSelect={() => directory.current?.click()}>Upload a directory…</MenuItem>
      </Menu>
      <Button onClick={() => files.current?.click()}>Upload</Button>
      <Button onClick={onSearch}>Search</Button>
      <Button kind="quiet" onClick={onRefresh}>
        Refresh
      </Button>
      <CheckField label="Hidden files" checked={areHiddenShown} onChange={onHidden} />
      <input
        ref={files}
        type="file"
        multiple
        hidden
        aria-label="Files to upload"
        onChange={(event) => take(event.target)}
      />
      <input
        ref={directory}
        type="file"
        hidden
        aria-label="Directory to upload"
        {...{ webkitdirectory: '' }}
        onChange={(event) => take(event.target)}
      />
    </div>
  )
}
