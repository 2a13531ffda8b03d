import Type from 'typebox'
import { optional } from '#src/http/shapes.ts'
import { languages } from './programs.ts'

/** Maximum length of a path, in bytes: the kernel's limit. */
const longestPath = 4096
const Text = Type.String()
const Whole = Type.Integer()
/** A line or a column. The maximum is the largest `uinteger` of the Language Server Protocol. */
const AskedPosition = Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 })

const project = {
  languageId: Type.Enum([...languages]),
  pathToProject: Type.String({ minLength: 1, maxLength: longestPath }),
}
const uri = Type.String({ minLength: 1, maxLength: 3 * longestPath })

export const ServerRequest = Type.Object(project)
export type ServerRequest = Type.Static<typeof ServerRequest>

export const DocumentRequest = Type.Object({ ...project, uri })
export type DocumentRequest = Type.Static<typeof DocumentRequest>

export const SymbolQuery = Type.Object({ ...project, query: Type.String({ maxLength: 1024 }) })
export type SymbolQuery = Type.Static<typeof SymbolQuery>

export const CompletionRequest = Type.Object({
  ...project,
  uri,
  position: Type.Object({ line: AskedPosition, character: AskedPosition }),
  context: optional(
    Type.Object({
      triggerKind: Type.Integer({ minimum: 1, maximum: 3 }),
      triggerCharacter: optional(Type.String({ maxLength: 16 })),
    }),
  ),
})
export type CompletionRequest = Type.Static<typeof CompletionRequest>

const Position = Type.Object({ line: Whole, character: Whole })
const Range = Type.Object({ start: Position, end: Position })
export type Position = Type.Static<typeof Position>
export type Range = Type.Static<typeof Range>

const CompletionItem = Type.Object({
  label: Text,
  kind: Type.Optional(Whole),
  detail: Type.Optional(Text),
  documentation: Type.Optional(Type.Object({ kind: Text, value: Text })),
  filterText: Type.Optional(Text),
  insertText: Type.Optional(Text),
  sortText: Type.Optional(Text),
})
export type CompletionItem = Type.Static<typeof CompletionItem>

export const CompletionList = Type.Object({ isIncomplete: Type.Boolean(), items: Type.Array(CompletionItem) })
export type CompletionList = Type.Static<typeof CompletionList>

export const LspSymbol = Type.Object({
  name: Text,
  kind: Whole,
  location: Type.Object({ uri: Text, range: Range }),
})
export type LspSymbol = Type.Static<typeof LspSymbol>
