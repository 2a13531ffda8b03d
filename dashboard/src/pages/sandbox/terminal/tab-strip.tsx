import { Button, IconButton } from '../../../ui/button.tsx'
import { Icon } from '../../../ui/icons.tsx'
import { shownName } from '../../../ui/shown-text.ts'
import { mostTerminals, type OpenTerminal } from './open-terminals.ts'

type StripProps = {
  open: readonly OpenTerminal[]
  shown: string | undefined
  onShow: (id: string) => void
  onNew: () => void
  onClose: (terminal: OpenTerminal) => void
  onRename: (terminal: OpenTerminal) => void
  onOthers: () => void
}

/** The bar with one tab for each open terminal, and the buttons that open more terminals. */
export const TabStrip = ({ open, shown, onShow, onNew, onClose, onRename, onOthers }: StripProps) => (
  <div className="terminal-strip">
    <ul aria-label="Open terminals">
      {open.map((each) => {
        const name = shownName(each.name)
        const isShown = each.id === shown
        return (
          <li key={each.id} className={isShown ? 'shown' : undefined}>
            <button
              type="button"
              className="cut"
              aria-pressed={isShown}
              title={isShown ? 'Rename' : undefined}
              onClick={() => (isShown ? onRename(each) : onShow(each.id))}
            >
              {name}
            </button>
            <IconButton label={`Close ${name}`} kind="quiet" compact onClick={() => onClose(each)}>
              <Icon name="close" />
            </IconButton>
          </li>
        )
      })}
    </ul>
    <Button compact disabled={open.length >= mostTerminals} onClick={onNew}>
      New terminal
    </Button>
    <Button compact kind="quiet" onClick={onOthers}>
      Others…
    </Button>
  </div>
)
