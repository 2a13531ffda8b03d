import type { ITheme } from '@xterm/xterm'

/** Which CSS variable holds each colour of a terminal. */
const tokens = {
  foreground: '--text',
  background: '--surface',
  cursor: '--accent',
  cursorAccent: '--surface',
  selectionBackground: '--selection',
  scrollbarSliderBackground: '--line',
  scrollbarSliderHoverBackground: '--line-strong',
  scrollbarSliderActiveBackground: '--line-strong',
  black: '--ansi-black',
  red: '--ansi-red',
  green: '--ansi-green',
  yellow: '--ansi-yellow',
  blue: '--ansi-blue',
  magenta: '--ansi-magenta',
  cyan: '--ansi-cyan',
  white: '--ansi-white',
  brightBlack: '--muted',
  brightRed: '--ansi-red',
  brightGreen: '--ansi-green',
  brightYellow: '--ansi-yellow',
  brightBlue: '--ansi-blue',
  brightMagenta: '--ansi-magenta',
  brightCyan: '--ansi-cyan',
  brightWhite: '--text',
} as const satisfies ITheme

/** The present colours of the page for xterm.js, which cannot use CSS variables itself. */
export const themeOf = (element: HTMLElement): ITheme => {
  const probe = document.createElement('span')
  element.append(probe)
  const theme = Object.fromEntries(
    Object.entries(tokens).map(([name, token]) => {
      probe.style.color = `var(${token})`
      return [name, getComputedStyle(probe).color]
    }),
  )
  probe.remove()
  return theme
}

/** Calls `changed` whenever the page's colours change, until the caller calls the function that is returned. */
export const onThemeChange = (changed: () => void): (() => void) => {
  const observer = new MutationObserver(changed)
  observer.observe(document.documentElement, { attributeFilter: ['data-theme'] })
  const system = matchMedia('(prefers-color-scheme: dark)')
  system.addEventListener('change', changed)
  return () => {
    observer.disconnect()
    system.removeEventListener('change', changed)
  }
}
