import { useCallback, useEffect, useRef, useState } from 'react'
import type { Sandbox } from '../../../api/client.ts'
import { IconButton } from '../../../ui/button.tsx'
import { ErrorNotice } from '../../../ui/error-notice.tsx'
import { Icon } from '../../../ui/icons.tsx'
import { Menu, MenuItem, MenuLine } from '../../../ui/menu.tsx'
import { sizeText } from '../../../ui/size-text.ts'
import { toast } from '../../../ui/toast.tsx'
import { clipboardText, copyText } from './clipboard.ts'
import { LinkDialog } from './link-dialog.tsx'
import { LinkNotice } from './link-notice.tsx'
import type { OpenTerminal } from './open-terminals.ts'
import { PasteDialog } from './paste-dialog.tsx'
import { isAskedFor, longestPaste, pastedText } from './pasted-text.ts'
import { useTerminal } from './use-terminal.ts'

type ScreenProps = {
  sandbox: Sandbox
  terminal: OpenTerminal
  isShown: boolean
  isRunning: boolean
  isReadAloud: boolean
  onReadAloud: (isOn: boolean) => void
  onMade: () => void
  onNew: () => void
}

/** Shows one terminal: its screen, notices about its connection, and its menu. */
export const Screen = ({
  sandbox,
  terminal,
  isShown,
  isRunning,
  isReadAloud,
  onReadAloud,
  onMade,
  onNew,
}: ScreenProps) => {
  const element = useRef<HTMLDivElement>(null)
  const after = useRef<HTMLDivElement>(null)
  const [target, setTarget] = useState<string>()
  const [pasted, setPasted] = useState<string>()

  const onKey = (event: KeyboardEvent): boolean => {
    if (event.type !== 'keydown' || !event.ctrlKey) return true
    // Ctrl+F6 moves the focus out of the terminal (WCAG 2.1.2). Tab cannot do this, because the shell needs Tab.
    if (event.key === 'F6') {
      event.preventDefault()
      after.current?.querySelector('button')?.focus()
      return false
    }
    if (!event.shiftKey || event.altKey) return true
    if (event.key.toLowerCase() === 'c') {
      event.preventDefault()
      void copyText(emulator.current?.selection() ?? '')
      return false
    }
    // The terminal must not get Ctrl+Shift+V: the browser turns it into a paste event, which the page handles.
    return event.key.toLowerCase() !== 'v'
  }
  const { view, emulator, connect } = useTerminal(element, {
    sandbox,
    terminal,
    isRunning,
    onMade,
    onLink: setTarget,
    onKey,
  })

  const focus = useCallback(() => emulator.current?.focus(), [emulator])
  const paste = useCallback(
    (text: string) => {
      emulator.current?.paste(pastedText(text))
      focus()
    },
    [emulator, focus],
  )
  const askAndPaste = useCallback(
    (text: string) => {
      if (text.length > longestPaste)
        toast('Too much to paste', 'You can paste at most 1 MiB into a terminal. Upload a file instead.')
      else if (isAskedFor(text)) setPasted(text)
      else paste(text)
    },
    [paste],
  )

  useEffect(() => {
    const box = element.current!
    const onPaste = (event: ClipboardEvent) => {
      event.preventDefault()
      event.stopPropagation()
      askAndPaste(event.clipboardData?.getData('text/plain') ?? '')
    }
    // With `capture`, this listener runs before that of xterm.js, which would paste a text without asking the user.
    box.addEventListener('paste', onPaste, { capture: true })
    let frame = 0
    const observer = new ResizeObserver(() => {
      cancelAnimationFrame(frame)
      frame = requestAnimationFrame(() => emulator.current?.fit())
    })
    observer.observe(box)
    return () => {
      box.removeEventListener('paste', onPaste, { capture: true })
      cancelAnimationFrame(frame)
      observer.disconnect()
    }
  }, [emulator, askAndPaste])

  const isConnected = view.state.name === 'connected'
  useEffect(() => {
    if (isShown && isConnected) focus()
  }, [isShown, isConnected, focus])
  // biome-ignore lint/correctness/useExhaustiveDependencies: the emulator is there only after the connection state changes
  useEffect(() => emulator.current?.readAloud(isReadAloud), [isReadAloud, isConnected])

  return (
    <div className="terminal-view" hidden={!isShown}>
      {view.failure !== undefined && <ErrorNotice error={view.failure} />}
      <LinkNotice state={view.state} onRetry={connect} onNew={isRunning ? onNew : undefined} />
      <div ref={element} className="terminal-screen" />
      <div ref={after} className="terminal-foot">
        <span className="cut muted small" title={view.hovered ?? view.title}>
          {view.hovered !== undefined
            ? `Link to ${view.hovered}`
            : view.droppedBytes > 0
              ? `${sizeText(view.droppedBytes)} of output was left out: it came too fast to be shown.`
              : view.title !== '' && `Title: ${view.title}`}
        </span>
        <span className="muted small terminal-hint">Ctrl+F6 leaves the terminal</span>
        <Menu
          trigger={
            <IconButton label="Terminal menu" kind="quiet" compact>
              <Icon name="more" />
            </IconButton>
          }
        >
          <MenuItem onSelect={() => void copyText(emulator.current?.selection() ?? '')}>Copy (Ctrl+Shift+C)</MenuItem>
          <MenuItem onSelect={() => void clipboardText().then((text) => text !== undefined && askAndPaste(text))}>
            Paste (Ctrl+Shift+V)
          </MenuItem>
          <MenuLine />
          <MenuItem onSelect={() => emulator.current?.clear()}>Clear</MenuItem>
          <MenuItem onSelect={() => emulator.current?.reset()}>Reset</MenuItem>
          <MenuLine />
          <MenuItem onSelect={() => onReadAloud(!isReadAloud)}>
            Screen reader mode {isReadAloud && <Icon name="check" />}
          </MenuItem>
        </Menu>
      </div>
      <LinkDialog target={target} onClose={() => setTarget(undefined)} />
      <PasteDialog text={pasted} onClose={() => setPasted(undefined)} onPaste={paste} />
    </div>
  )
}
