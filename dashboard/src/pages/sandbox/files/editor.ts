// Sets up CodeMirror for the editor. The page loads this file only when a text file is opened.
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import {
  bracketMatching,
  defaultHighlightStyle,
  HighlightStyle,
  indentOnInput,
  syntaxHighlighting,
} from '@codemirror/language'
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search'
import { EditorState, type Extension } from '@codemirror/state'
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from '@codemirror/view'
import { cspNonce } from '../../../csp-nonce.ts'
import type { FileText } from './file-text.ts'

/** File name patterns and the language of files that match. The code of a language is loaded when it is first needed. */
const languages: [RegExp, () => Promise<Extension>][] = [
  [/\.(?:[cm]?js|jsx)$/i, async () => (await import('@codemirror/lang-javascript')).javascript({ jsx: true })],
  [/\.[cm]?ts$/i, async () => (await import('@codemirror/lang-javascript')).javascript({ typescript: true })],
  [/\.tsx$/i, async () => (await import('@codemirror/lang-javascript')).javascript({ typescript: true, jsx: true })],
  [/\.(?:json|jsonl|webmanifest)$/i, async () => (await import('@codemirror/lang-json')).json()],
  [/\.(?:py|pyi)$/i, async () => (await import('@codemirror/lang-python')).python()],
  [/\.(?:md|markdown)$/i, async () => (await import('@codemirror/lang-markdown')).markdown()],
]

/**
 * Returns the CodeMirror extension that colours a file's text, or an empty extension if the file name matches no known language.
 */
export const languageOf = async (name: string): Promise<Extension> =>
  (await languages.find(([pattern]) => pattern.test(name))?.[1]()) ?? []

/**
 * Replaces each colour of CodeMirror's default style by a CSS variable of the page, so that the editor fits both themes.
 */
const colours: Record<string, string> = {
  '#708': '--ansi-magenta',
  '#219': '--ansi-blue',
  '#164': '--ansi-green',
  '#a11': '--ansi-red',
  '#e40': '--ansi-yellow',
  '#00f': '--ansi-blue',
  '#30a': '--text',
  '#085': '--ansi-cyan',
  '#167': '--ansi-cyan',
  '#256': '--ansi-yellow',
  '#00c': '--ansi-blue',
  '#940': '--muted',
  '#f00': '--danger',
  '#404740': '--muted',
}
const highlights = HighlightStyle.define(
  defaultHighlightStyle.specs.map((spec) => ({
    ...spec,
    ...(typeof spec['color'] === 'string' && { color: `var(${colours[spec['color']] ?? '--text'})` }),
  })),
)

const looks = EditorView.theme({
  '&': { height: '100%', backgroundColor: 'var(--surface)', color: 'var(--text)', fontSize: '13px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55' },
  '.cm-content': { caretColor: 'var(--text)' },
  // Removes CodeMirror's own outline: the page's style sheet marks the whole editor while it has the focus.
  '&.cm-focused': { outline: 'none' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': { backgroundColor: 'var(--sunken)', color: 'var(--muted)', borderRight: '1px solid var(--line)' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--hover)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'var(--selection)',
  },
  '.cm-selectionMatch, .cm-searchMatch': { backgroundColor: 'var(--warn-soft)' },
  '.cm-searchMatch-selected': { backgroundColor: 'var(--selection)' },
  '.cm-matchingBracket': { backgroundColor: 'var(--accent-soft)' },
  '.cm-specialChar': { color: 'var(--danger)' },
  '.cm-panels': { backgroundColor: 'var(--raised)', color: 'var(--text)', borderColor: 'var(--line)' },
  '.cm-textfield': { backgroundColor: 'var(--surface)', borderColor: 'var(--line-strong)' },
  '.cm-button': { backgroundImage: 'none', backgroundColor: 'var(--surface)', borderColor: 'var(--line-strong)' },
})

export type Editor = { text: () => string; focus: () => void; dispose: () => void }

type EditorOptions = { name: string; language: Extension; onChange: () => void; onSave: () => void }

export const openEditor = (parent: HTMLElement, { text, lineEnd }: FileText, options: EditorOptions): Editor => {
  const save = () => {
    options.onSave()
    return true
  }
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        ...(cspNonce === undefined ? [] : [EditorView.cspNonce.of(cspNonce)]),
        EditorState.lineSeparator.of(lineEnd),
        // Tab indents the text. After Escape, Tab moves the focus out of the editor instead (WCAG 2.1.2).
        keymap.of([{ key: 'Mod-s', run: save }, ...searchKeymap, ...historyKeymap, ...defaultKeymap, indentWithTab]),
        lineNumbers(),
        history(),
        drawSelection(),
        highlightSpecialChars(),
        highlightActiveLine(),
        highlightActiveLineGutter(),
        highlightSelectionMatches(),
        bracketMatching(),
        indentOnInput(),
        search({ top: true }),
        syntaxHighlighting(highlights),
        looks,
        EditorView.contentAttributes.of({ 'aria-label': `Text of ${options.name}` }),
        EditorView.updateListener.of(({ docChanged }) => docChanged && options.onChange()),
        options.language,
      ],
    }),
  })
  return {
    text: () => view.state.sliceDoc(),
    focus: () => view.focus(),
    dispose: () => view.destroy(),
  }
}
