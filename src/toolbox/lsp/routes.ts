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
    summary: 'Starts a language server for a language and a project. Does nothing if the server already runs.',
    body: ServerRequest,
    replies: { 200: null },
    run: ({ sandbox, body }) => startServer(sandbox, body),
  }),
  route({
    method: 'POST',
    path: '/lsp/stop',
    needs: 'sandbox',
    summary: 'Stops a language server.',
    body: ServerRequest,
    replies: { 200: null },
    run: ({ sandbox, body }) => stopServer(sandbox, body),
  }),
  route({
    method: 'POST',
    path: '/lsp/did-open',
    needs: 'sandbox',
    summary: 'Opens a file with its current text in a language server. An open file is closed and opened again.',
    body: DocumentRequest,
    replies: { 200: null },
    run: ({ sandbox, body }) => openDocument(sandbox, body),
  }),
  route({
    method: 'POST',
    path: '/lsp/did-close',
    needs: 'sandbox',
    summary: 'Closes a file in a language server.',
    body: DocumentRequest,
    replies: { 200: null },
    run: ({ sandbox, body }) => closeDocument(sandbox, body),
  }),
  route({
    method: 'POST',
    path: '/lsp/completions',
    needs: 'sandbox',
    summary: 'Lists the completions for a position in a file.',
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
    summary: 'Finds the symbols of a project that match a query.',
    query: SymbolQuery,
    replies: { 200: Type.Array(LspSymbol) },
    run: ({ sandbox, query }) => listWorkspaceSymbols(sandbox, query),
  }),
]
