import { FormDialog } from '../../../ui/dialog.tsx'
import { linesOf, pastedText } from './pasted-text.ts'

/** Maximum length of the text that the dialog shows, in characters. */
const shownLength = 4000

type PasteProps = { text: string | undefined; onClose: () => void; onPaste: (text: string) => void }

/** Asks before a text with line ends is pasted, because a shell may run each line immediately. */
export const PasteDialog = ({ text = '', onClose, onPaste }: PasteProps) => {
  const lines = linesOf(text)
  const shown = pastedText(text.slice(0, shownLength))
  return (
    <FormDialog
      title={lines === 1 ? 'Paste a line that may run immediately?' : `Paste ${lines} lines?`}
      isOpen={text !== ''}
      onClose={onClose}
      submit="Paste"
      onSubmit={async () => {
        onPaste(text)
        onClose()
      }}
    >
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <pre className="paste-text" tabIndex={0}>
        {shown}
        {text.length > shownLength && '…'}
      </pre>
    </FormDialog>
  )
}
