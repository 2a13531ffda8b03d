// Translates clients' names of keys into X11 keysyms for xdotool, which gets no other text as a key.
import { Problem } from '#src/problems.ts'

const modifiers: Record<string, string> = {
  ...{ ctrl: 'ctrl', control: 'ctrl', alt: 'alt', option: 'alt', opt: 'alt', shift: 'shift' },
  ...{ cmd: 'super', command: 'super', meta: 'super', win: 'super', windows: 'super', super: 'super' },
}

const named: Record<string, string> = {
  ...{ enter: 'Return', return: 'Return', escape: 'Escape', esc: 'Escape', tab: 'Tab', space: 'space' },
  ...{ backspace: 'BackSpace', delete: 'Delete', del: 'Delete', insert: 'Insert', ins: 'Insert' },
  ...{ home: 'Home', end: 'End', pageup: 'Page_Up', page_up: 'Page_Up', pagedown: 'Page_Down', page_down: 'Page_Down' },
  ...{ up: 'Up', down: 'Down', left: 'Left', right: 'Right' },
  ...{ arrowup: 'Up', arrowdown: 'Down', arrowleft: 'Left', arrowright: 'Right' },
  ...{ capslock: 'Caps_Lock', caps_lock: 'Caps_Lock', numlock: 'Num_Lock', num_lock: 'Num_Lock' },
  ...{ scrolllock: 'Scroll_Lock', printscreen: 'Print', print: 'Print', pause: 'Pause', menu: 'Menu' },
  ...{ num_plus: 'KP_Add', num_minus: 'KP_Subtract', num_asterisk: 'KP_Multiply', num_multiply: 'KP_Multiply' },
  ...{ num_slash: 'KP_Divide', num_divide: 'KP_Divide', num_enter: 'KP_Enter', num_decimal: 'KP_Decimal' },
  ...{ num_equal: 'KP_Equal', plus: 'plus', minus: 'minus' },
}

const punctuation: Record<string, string> = {
  ...{ ' ': 'space', '!': 'exclam', '"': 'quotedbl', '#': 'numbersign', $: 'dollar', '%': 'percent', '&': 'ampersand' },
  ...{
    "'": 'apostrophe',
    '(': 'parenleft',
    ')': 'parenright',
    '*': 'asterisk',
    '+': 'plus',
    ',': 'comma',
    '-': 'minus',
  },
  ...{ '.': 'period', '/': 'slash', ':': 'colon', ';': 'semicolon', '<': 'less', '=': 'equal', '>': 'greater' },
  ...{ '?': 'question', '@': 'at', '[': 'bracketleft', '\\': 'backslash', ']': 'bracketright', '^': 'asciicircum' },
  ...{ _: 'underscore', '`': 'grave', '{': 'braceleft', '|': 'bar', '}': 'braceright', '~': 'asciitilde' },
}

const lookUp = (table: Record<string, string>, name: string) => (Object.hasOwn(table, name) ? table[name] : undefined)

const shown = (name: string) => JSON.stringify(name.slice(0, 40))

const modifierOf = (name: string): string => {
  const found = lookUp(modifiers, name.trim().toLowerCase())
  if (found !== undefined) return found
  throw new Problem('bad_request', `There is no modifier ${shown(name)}: use ctrl, alt, shift or cmd.`)
}

const keyOf = (name: string): string => {
  if (/^[a-z0-9]$/i.test(name)) return name
  const key = name.trim().toLowerCase()
  const [, number] = /^(?:num_?|numpad_?)([0-9])$/.exec(key) ?? []
  if (number !== undefined) return `KP_${number}`
  if (/^f(?:[1-9]|1[0-9]|2[0-4])$/.test(key)) return key.toUpperCase()
  // A modifier can also be a key of its own: `super` alone opens menus.
  const found = lookUp(punctuation, name) ?? lookUp(named, key) ?? lookUp(modifiers, key)
  if (found !== undefined) return found
  throw new Problem(
    'bad_request',
    `There is no key ${shown(name)}: use a character, or a name such as enter, tab or f5.`,
  )
}

/** Joins the modifiers and the key into the form that xdotool reads, such as `ctrl+shift+t`. */
export const chordOf = (key: string, held: readonly string[] = []): string => {
  const all = [...held.map(modifierOf), keyOf(key)]
  return [...new Set(all)].join('+')
}

/** Reads a hotkey in the form that callers send: `ctrl+c`, `ctrl + c`, `shift`, and `ctrl++` for the key plus. */
export const readHotkey = (keys: string): string => {
  const [, held = '', key = ''] = /^((?:[^+]+\+)*)(\+|[^+]*)$/.exec(keys.trim()) ?? []
  return chordOf(key === '+' ? key : key.trim(), held.split('+').slice(0, -1))
}
