import { useState } from 'react'
import { Button, IconButton } from './button.tsx'
import { Icon } from './icons.tsx'
import { toastError } from './toast.tsx'

const useCopy = (text: string) => {
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setCopied(true)
      setTimeout(() => setCopied(false), 1500)
    } catch {
      toastError(
        'Copying did not work',
        new Error('The browser allows the clipboard only on pages with HTTPS or on localhost.'),
      )
    }
  }
  return { isCopied, copy: () => void copy() }
}

/** A text, such as an id, that a click copies. `shown` is a shorter form for the page. */
export const CopyText = ({ text, shown = text }: { text: string; shown?: string }) => {
  const { isCopied, copy } = useCopy(text)
  return (
    <Button kind="quiet" compact className="mono" title={`Copy ${text}`} onClick={copy}>
      {isCopied ? 'Copied' : shown}
    </Button>
  )
}

/** Shows a command or code, with a button that copies it. */
export const CodeBlock = ({ code, label = 'Copy' }: { code: string; label?: string }) => {
  const { isCopied, copy } = useCopy(code)
  return (
    <div className="code-block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <pre tabIndex={0}>
        <code>{code}</code>
      </pre>
      <IconButton label={label} compact onClick={copy}>
        <Icon name={isCopied ? 'check' : 'copy'} />
      </IconButton>
    </div>
  )
}

/** Shows a secret value that the server sends only once, with a button that copies it. */
export const SecretOnce = ({ value, what }: { value: string; what: string }) => (
  <div className="stack">
    <div className="notice warn">Copy {what} now. It is not shown again.</div>
    <CodeBlock code={value} label={`Copy ${what}`} />
  </div>
)
