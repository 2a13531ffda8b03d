// The calls of the language server endpoints.
import { Problem } from '#src/problems.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import { completionsOf, symbolsOf } from './answers.ts'
import { pathOf, readText, uriOf } from './files.ts'
import { languageOfFile } from './programs.ts'
import type {
  CompletionList,
  CompletionRequest,
  DocumentRequest,
  LspSymbol,
  ServerRequest,
  SymbolQuery,
} from './schemas.ts'
import { getServer } from './servers.ts'

/** Maximum number of documents that are open in one server. The server keeps each open document in memory. */
const mostDocuments = 200

const filesOf = ({ agent, assignment }: ToolboxSandbox) => agent.files(assignment.user)

/** Opens a document with the current text of its file. A document that is already open is closed and opened again. */
export const openDocument = async (sandbox: ToolboxSandbox, wanted: DocumentRequest): Promise<void> => {
  const { server, documents, directory } = await getServer(sandbox, wanted)
  const path = await pathOf(filesOf(sandbox), wanted.uri, directory)
  const text = await readText(filesOf(sandbox), path)
  const uri = uriOf(path)
  if (documents.has(uri)) server.notify('textDocument/didClose', { textDocument: { uri } })
  else if (documents.size >= mostDocuments) {
    throw new Problem(
      'rate_limited',
      `This language server has ${mostDocuments} open documents, the most that it can have; close one first.`,
    )
  }
  documents.delete(uri)
  const languageId = languageOfFile(path, wanted.languageId)
  server.notify('textDocument/didOpen', { textDocument: { uri, languageId, version: 1, text } })
  documents.add(uri)
}

export const closeDocument = async (sandbox: ToolboxSandbox, wanted: DocumentRequest): Promise<void> => {
  const { server, documents, directory } = await getServer(sandbox, wanted)
  const uri = uriOf(await pathOf(filesOf(sandbox), wanted.uri, directory))
  if (documents.delete(uri)) server.notify('textDocument/didClose', { textDocument: { uri } })
}

export const complete = async (sandbox: ToolboxSandbox, wanted: CompletionRequest): Promise<CompletionList> => {
  const { server, directory } = await getServer(sandbox, wanted)
  const { position, context } = wanted
  const uri = uriOf(await pathOf(filesOf(sandbox), wanted.uri, directory))
  const { triggerKind, triggerCharacter } = context ?? { triggerKind: 1 }
  const asked = { triggerKind, ...(triggerCharacter ? { triggerCharacter } : {}) }
  const params = { textDocument: { uri }, position, context: asked }
  return completionsOf(await server.request('textDocument/completion', params))
}

export const listDocumentSymbols = async (sandbox: ToolboxSandbox, wanted: DocumentRequest): Promise<LspSymbol[]> => {
  const { server, directory } = await getServer(sandbox, wanted)
  const uri = uriOf(await pathOf(filesOf(sandbox), wanted.uri, directory))
  return symbolsOf(await server.request('textDocument/documentSymbol', { textDocument: { uri } }), uri)
}

export const listWorkspaceSymbols = async (sandbox: ToolboxSandbox, wanted: SymbolQuery): Promise<LspSymbol[]> => {
  const { server } = await getServer(sandbox, wanted)
  return symbolsOf(await server.request('workspace/symbol', { query: wanted.query }))
}

export const stopServer = async (sandbox: ToolboxSandbox, wanted: ServerRequest): Promise<void> => {
  const { server } = await getServer(sandbox, wanted)
  server.end()
}
