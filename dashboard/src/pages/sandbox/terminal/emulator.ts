// Sets up xterm.js without the features that a hostile program could abuse. This file is loaded only when a terminal is opened.
import { FitAddon } from '@xterm/addon-fit'
import { WebLinksAddon } from '@xterm/addon-web-links'
import { Terminal } from '@xterm/xterm'
import '@xterm/xterm/css/xterm.css'
import { OutputDecoder } from './output-decoder.ts'
import { onThemeChange, themeOf } from './theme.ts'
import { allowedDocument } from './xterm-document.ts'

/** Maximum number of lines that the user can scroll back. */
const scrollback = 5000
/** The number of the escape sequence (OSC) with which a program reads or sets the clipboard. Such a sequence is always ignored. */
const clipboardCommand = 52

export type EmulatorEvents = {
  onInput: (data: string | Uint8Array<ArrayBuffer>) => void
  onResize: (size: { cols: number; rows: number }) => void
  /** Called when a program sets a title. The title may be any text. */
  onTitle: (title: string) => void
  /** Called when the reader clicks a link. The emulator itself never opens a link. */
  onLink: (target: string) => void
  /** Called with the address of the link under the mouse pointer. The visible text of the link may say something else. */
  onHover: (target: string | undefined) => void
  /** Called for each key. Returns false if the page handles the key and the terminal must not get it. */
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
    // Makes text readable if a program has chosen colours that are hard to see on this background (WCAG 1.4.3).
    minimumContrastRatio: 4.5,
    // Without this option, each invalid byte of output writes a line into the browser's console.
    logLevel: 'off',
    scrollback,
    theme: themeOf(element),
    // A program can make a link (OSC 8) whose text differs from its address. So the page shows the address and asks first.
    linkHandler: { ...links, activate: (_, target) => events.onLink(target), allowNonHttpProtocols: false },
  })
  const decoder = new OutputDecoder()
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
    write: (data, done) => terminal.write(decoder.decode(data), done),
    reset: () => {
      decoder.reset()
      terminal.reset()
    },
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
