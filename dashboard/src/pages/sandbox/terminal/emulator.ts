// xterm.js with what a hostile program must not be able to do taken away. This file is its own chunk.
import { FitAddon } from '@xterm/addon-fit'
import { WebLinksAddon } from '@xterm/addon-web-links'
import { Terminal } from '@xterm/xterm'
import '@xterm/xterm/css/xterm.css'
import { onThemeChange, themeOf } from './theme.ts'
import { allowedDocument } from './xterm-document.ts'

/** How many lines above the screen are kept. */
const scrollback = 5000
/** The command (OSC) by which output reads and sets the clipboard. It is never obeyed. */
const clipboardCommand = 52

export type EmulatorEvents = {
  onInput: (data: string | Uint8Array<ArrayBuffer>) => void
  onResize: (size: { cols: number; rows: number }) => void
  /** The title that a program has set. It may be any text. */
  onTitle: (title: string) => void
  /** A click on a link. Nothing is opened by itself. */
  onLink: (target: string) => void
  /** The target of the link under the pointer, which may differ from its text. */
  onHover: (target: string | undefined) => void
  /** A key of the page, and not of the terminal. */
  onKey: (event: KeyboardEvent) => boolean
}

export type Emulator = {
  readonly size: { cols: number; rows: number }
  write: (data: Uint8Array, done: () => void) => void
  reset: () => void
  clear: () => void
  paste: (text: string) => void
  selection: () => string
  focus: () => void
  fit: () => void
  readAloud: (isOn: boolean) => void
  dispose: () => void
}

const bytesOf = (binary: string): Uint8Array<ArrayBuffer> => Uint8Array.from(binary, (char) => char.charCodeAt(0))

export const openEmulator = (element: HTMLElement, label: string, events: EmulatorEvents): Emulator => {
  const links = {
    hover: (_: MouseEvent, target: string) => events.onHover(target),
    leave: () => events.onHover(undefined),
  }
  const terminal = new Terminal({
    allowProposedApi: false,
    cursorBlink: false,
    documentOverride: allowedDocument(),
    fontFamily: getComputedStyle(element).getPropertyValue('--mono'),
    fontSize: 13,
    // Also programs that choose colours for another background stay readable (WCAG 1.4.3).
    minimumContrastRatio: 4.5,
    // Every byte of junk would be a line in the browser's console.
    logLevel: 'off',
    scrollback,
    theme: themeOf(element),
    // Links that a program marks (OSC 8): their text may be any, so their target is shown and asked about.
    linkHandler: { ...links, activate: (_, target) => events.onLink(target), allowNonHttpProtocols: false },
  })
  const fit = new FitAddon()
  terminal.loadAddon(fit)
  terminal.loadAddon(new WebLinksAddon((_, target) => events.onLink(target), links))
  terminal.parser.registerOscHandler(clipboardCommand, () => true)
  terminal.attachCustomKeyEventHandler(events.onKey)
  terminal.open(element)
  terminal.textarea?.setAttribute('aria-label', label)
  fit.fit()
  terminal.onData(events.onInput)
  terminal.onBinary((data) => events.onInput(bytesOf(data)))
  terminal.onResize(events.onResize)
  terminal.onTitleChange(events.onTitle)
  const stopTheme = onThemeChange(() => {
    terminal.options.theme = themeOf(element)
  })
  return {
    get size() {
      return { cols: terminal.cols, rows: terminal.rows }
    },
    write: (data, done) => terminal.write(data, done),
    reset: () => terminal.reset(),
    clear: () => terminal.clear(),
    paste: (text) => terminal.paste(text),
    selection: () => terminal.getSelection(),
    focus: () => terminal.focus(),
    fit: () => {
      if (element.clientWidth > 0 && element.clientHeight > 0) fit.fit()
    },
    readAloud: (isOn) => {
      terminal.options.screenReaderMode = isOn
    },
    dispose: () => {
      stopTheme()
      terminal.dispose()
    },
  }
}
