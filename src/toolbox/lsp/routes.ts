import Type from 'typebox'
import { route } from '../sandbox.ts'
import { CompletionList, CompletionRequest, DocumentRequest, LspSymbol, ServerRequest, SymbolQuery } from './schemas.ts'
import { startServer } from './servers.ts'
import {
  closeDocument,
  complete,
  listDocumentSymbols,
  listWorkspaceSymbols,
  openDocument,
  stopServer,
} from './service.ts'

export const lspRoutes = [
  route({
    method: 'POST',
    path: '/lsp/start',
    needs: 'sandbox',
    summary: 'Starts the language server of a language and a project, unless it already runs.',
    body: ServerRequest,
    replies: { 200: null },
    run: ({ sandbox, body }) => startServer(sandbox, body),
  }),
  route({
    method: 'POST',
    path: '/lsp/stop',
    needs: 'sandbox',
    summary: 'Ends a language server.',
    body: ServerRequest,
    replies: { 200: null },
    run: ({ sandbox, body }) => stopServer(sandbox, body),
  }),
  route({
    method: 'POST',
    path: '/lsp/did-open',
    needs: 'sandbox',
    summary: 'Gives a language server the current text of a file.',
    body: DocumentRequest,
    replies: { 200: null },
    run: ({ sandbox, body }) => openDocument(sandbox, body),
  }),
  route({
    method: 'POST',
    path: '/lsp/did-close',
    needs: 'sandbox',
    summary: 'Tells a language server that a file is closed.',
    body: DocumentRequest,
    replies: { 200: null },
    run: ({ sandbox, body }) => closeDocument(sandbox, body),
  }),
  route({
    method: 'POST',
    path: '/lsp/completions',
    needs: 'sandbox',
    summary: 'Lists completions for a position in a file.',
    body: CompletionRequest,
    replies: { 200: CompletionList },
    run: ({ sandbox, body }) => complete(sandbox, body),
  }),
  route({
    method: 'GET',
    path: '/lsp/document-symbols',
    needs: 'sandbox',
    summary: 'Lists the symbols of a file.',
    query: DocumentRequest,
    replies: { 200: Type.Array(LspSymbol) },
    run: ({ sandbox, query }) => listDocumentSymbols(sandbox, query),
  }),
  route({
    method: 'GET',
    path: '/lsp/workspacesymbols',
    needs: 'sandbox',
    summary: 'Finds symbols in a project.',
    query: SymbolQuery,
    replies: { 200: Type.Array(LspSymbol) },
    run: ({ sandbox, query }) => listWorkspaceSymbols(sandbox, query),
  }),
]
