import { Button, buttonClass } from '../../../ui/button.tsx'
import { Dialog } from '../../../ui/dialog.tsx'
import { shownName } from '../../../ui/shown-text.ts'
import { webAddress } from './web-address.ts'

/** Shows the address of a link in the terminal, and asks before the browser opens it. */
export const LinkDialog = ({ target, onClose }: { target: string | undefined; onClose: () => void }) => {
  const url = target === undefined ? undefined : webAddress(target)
  return (
    <Dialog title="Open this address?" isOpen={target !== undefined} onClose={onClose}>
      <div className="notice mono">{shownName(url?.href ?? target ?? '', 2100)}</div>
      <p className="muted">
        {url === undefined
          ? 'This page opens only plain addresses that begin with http:// or https://.'
          : 'A program in the sandbox has written this link. Open it only if you trust it.'}
      </p>
      <div className="dialog-actions">
        <Button onClick={onClose}>Cancel</Button>
        {url !== undefined && (
          <a
            className={buttonClass({ kind: 'primary' })}
            href={url.href}
            target="_blank"
            rel="noopener noreferrer"
            onClick={onClose}
          >
            Open {url.host}
          </a>
        )}
      </div>
    </Dialog>
  )
}
