import { basename } from 'node:path'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { longestText } from '#src/http/shapes.ts'
import { type Deadline, deadlineOf } from '#src/toolbox/running/deadline.ts'
import { route, type ToolboxSandbox } from '../sandbox.ts'
import { bulkDownload } from './bulk-download.ts'
import { makeFolder, move, remove, setPermissions } from './change.ts'
import { download } from './download.ts'
import { told } from './failures.ts'
import { find, findLength } from './find.ts'
import { describe, list, listingLength } from './listing.ts'
import { replaceInFiles } from './replace.ts'
import {
  AtPath,
  BulkDownloadRequest,
  DeleteQuery,
  FileInfo,
  FindQuery,
  FolderQuery,
  ListQuery,
  Match,
  MoveQuery,
  PermissionsQuery,
  ReplaceRequest,
  ReplaceResult,
  SearchFilesResponse,
  SearchQuery,
  UploadedFile,
} from './schemas.ts'
import { search, searchLength } from './search.ts'
import { bulkUpload, upload } from './upload.ts'

/** Timeout of a search through many files, in seconds. */
const lookSeconds = 2 * 60
/** Timeout of a change to many or large files, in seconds. */
const changeSeconds = 30 * 60

/** Access to the sandbox's files, with the rights of the sandbox's user only. */
const filesOf = ({ agent, assignment }: ToolboxSandbox) => agent.files(assignment.user)

const within = <T>(
  reply: FastifyReply,
  seconds: number,
  work: (deadline: Deadline) => Promise<T>,
  path?: string,
): Promise<T> =>
  told(
    async () => {
      using deadline = deadlineOf(reply, { seconds })
      return await work(deadline)
    },
    { path },
  )

/** Sets the header `X-Alcove-Truncated` if the list in the body is cut, because the body has no field for that. */
const sayCut = (reply: FastifyReply, isCut: boolean) => {
  if (isCut) reply.header('x-alcove-truncated', 'true')
}

const uploading = {
  method: 'POST',
  needs: 'sandbox',
  summary: 'Writes a file, from the field `file` of a form or from the body itself.',
  query: AtPath,
  streamsBody: true,
} as const

export const fileRoutes = [
  route({
    method: 'GET',
    path: '/files',
    needs: 'sandbox',
    summary: `What a directory holds, to a depth of at most 64; at most ${listingLength} entries, else the header X-Alcove-Truncated.`,
    query: ListQuery,
    replies: { 200: Type.Array(FileInfo) },
    run: ({ sandbox, query, reply }) =>
      told(
        async () => {
          const { infos, isCut } = await list(filesOf(sandbox), query.path ?? '', query.depth)
          sayCut(reply, isCut)
          return infos
        },
        { path: query.path },
      ),
  }),
  route({
    method: 'GET',
    path: '/files/info',
    needs: 'sandbox',
    summary: 'Describes a file or a directory; a link is followed.',
    query: AtPath,
    replies: { 200: FileInfo },
    run: ({ sandbox, query }) => told(() => describe(filesOf(sandbox), query.path), { path: query.path }),
  }),
  route({
    method: 'GET',
    path: '/files/find',
    needs: 'sandbox',
    summary: `Lines of text files that hold a literal text; at most ${findLength}, else the header X-Alcove-Truncated.`,
    query: FindQuery,
    replies: { 200: Type.Array(Match) },
    run: ({ sandbox, query, reply }) =>
      within(
        reply,
        lookSeconds,
        async (deadline) => {
          const { matches, isCut } = await find(sandbox, deadline, query.path, query.pattern)
          sayCut(reply, isCut)
          return matches
        },
        query.path,
      ),
  }),
  route({
    method: 'GET',
    path: '/files/search',
    needs: 'sandbox',
    summary: `Files and directories whose names fit a glob; at most ${searchLength}, else the header X-Alcove-Truncated.`,
    query: SearchQuery,
    replies: { 200: SearchFilesResponse },
    run: ({ sandbox, query, reply }) =>
      within(
        reply,
        lookSeconds,
        async (deadline) => {
          const { files, isCut } = await search(sandbox, deadline, query.path, query.pattern)
          sayCut(reply, isCut)
          return { files }
        },
        query.path,
      ),
  }),
  route({
    method: 'POST',
    path: '/files/folder',
    needs: 'sandbox',
    summary: 'Makes a directory, and those above it that are missing.',
    query: FolderQuery,
    replies: { 201: null },
    run: async ({ sandbox, query }) => {
      await makeFolder(filesOf(sandbox), query.path, query.mode)
    },
  }),
  route({
    method: 'POST',
    path: '/files/move',
    needs: 'sandbox',
    summary: 'Moves or renames, and never replaces anything.',
    query: MoveQuery,
    replies: { 200: null },
    run: ({ sandbox, query, reply }) =>
      within(reply, changeSeconds, (deadline) => move(sandbox, deadline, query.source, query.destination)),
  }),
  route({
    method: 'POST',
    path: '/files/permissions',
    needs: 'sandbox',
    summary: 'Sets mode, owner and group.',
    query: PermissionsQuery,
    replies: { 200: null },
    run: ({ sandbox, query: { path, ...change } }) => setPermissions(filesOf(sandbox), path, change),
  }),
  route({
    method: 'POST',
    path: '/files/replace',
    needs: 'sandbox',
    summary: 'Replaces a literal text in files, each as a whole or not at all; binary files stay as they are.',
    body: ReplaceRequest,
    bodyLimit: longestText,
    replies: { 200: Type.Array(ReplaceResult) },
    run: ({ sandbox, body, reply }) =>
      within(reply, changeSeconds, (deadline) => replaceInFiles(filesOf(sandbox), body, deadline)),
  }),
  route({
    method: 'DELETE',
    path: '/files',
    needs: 'sandbox',
    summary: 'Deletes a file, or a directory with all it holds.',
    query: DeleteQuery,
    replies: { 204: null },
    run: ({ sandbox, query }) => remove(filesOf(sandbox), query.path, query.recursive),
  }),
  route({
    method: 'GET',
    path: '/files/download',
    needs: 'sandbox',
    summary: 'The contents of a file, or one range of them.',
    query: AtPath,
    replies: { 200: Type.Any(), 206: Type.Any() },
    run: ({ sandbox, query, request, reply }) => download(filesOf(sandbox), query.path, request, reply),
  }),
  route({
    method: 'POST',
    path: '/files/bulk-download',
    needs: 'sandbox',
    summary: 'A multipart form with a part for each path: `file`, or `error` for one that could not be read.',
    body: BulkDownloadRequest,
    bodyLimit: longestText,
    replies: { 200: Type.Any() },
    run: ({ sandbox, body, request, reply }) => bulkDownload(filesOf(sandbox), body.paths, request, reply),
  }),
  route({
    ...uploading,
    path: '/files/upload',
    replies: { 200: null },
    run: ({ sandbox, query, request }) => upload(filesOf(sandbox), query.path, request.raw),
  }),
  route({
    ...uploading,
    path: '/files/upload-v2',
    replies: { 200: UploadedFile },
    run: async ({ sandbox, query: { path }, request }) => {
      await upload(filesOf(sandbox), path, request.raw)
      return { name: basename(path), path, type: 'file' as const }
    },
  }),
  route({
    method: 'POST',
    path: '/files/bulk-upload',
    needs: 'sandbox',
    summary: 'Writes many files, from `files[i].path` and then `files[i].file` of a form.',
    streamsBody: true,
    replies: { 200: null },
    run: ({ sandbox, request }) => bulkUpload(filesOf(sandbox), request.raw),
  }),
]
