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
  summary:
    'Writes a file and creates missing parent directories. The body is the file, or a form with the field `file`.',
  query: AtPath,
  streamsBody: true,
} as const

export const fileRoutes = [
  route({
    method: 'GET',
    path: '/files',
    needs: 'sandbox',
    summary: `Lists at most ${listingLength} entries of a directory, up to 64 levels deep. The header X-Alcove-Truncated marks a cut list.`,
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
    summary:
      'Returns the type, size, mode, owner and modification time of a file or directory. Follows symbolic links.',
    query: AtPath,
    replies: { 200: FileInfo },
    run: ({ sandbox, query }) => told(() => describe(filesOf(sandbox), query.path), { path: query.path }),
  }),
  route({
    method: 'GET',
    path: '/files/find',
    needs: 'sandbox',
    summary: `Finds at most ${findLength} lines of text files that contain a literal text. The header X-Alcove-Truncated marks a cut list.`,
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
    summary: `Finds at most ${searchLength} files and directories whose names match a glob. The header X-Alcove-Truncated marks a cut list.`,
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
    summary: 'Creates a directory and its missing parent directories. An existing directory is not an error.',
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
    summary: 'Moves or renames a file or directory. Never replaces an existing file or directory.',
    query: MoveQuery,
    replies: { 200: null },
    run: ({ sandbox, query, reply }) =>
      within(reply, changeSeconds, (deadline) => move(sandbox, deadline, query.source, query.destination)),
  }),
  route({
    method: 'POST',
    path: '/files/permissions',
    needs: 'sandbox',
    summary: 'Sets the mode, owner and group of a file or directory. Absent parameters change nothing.',
    query: PermissionsQuery,
    replies: { 200: null },
    run: ({ sandbox, query: { path, ...change } }) => setPermissions(filesOf(sandbox), path, change),
  }),
  route({
    method: 'POST',
    path: '/files/replace',
    needs: 'sandbox',
    summary:
      'Replaces a literal text in files. Each file changes completely or not at all; binary files stay unchanged.',
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
    summary: 'Deletes a file, or a directory with its contents if `recursive` is true.',
    query: DeleteQuery,
    replies: { 204: null },
    run: ({ sandbox, query }) => remove(filesOf(sandbox), query.path, query.recursive),
  }),
  route({
    method: 'GET',
    path: '/files/download',
    needs: 'sandbox',
    summary: 'Downloads a file, or one range of its bytes.',
    query: AtPath,
    replies: { 200: Type.Any(), 206: Type.Any() },
    run: ({ sandbox, query, request, reply }) => download(filesOf(sandbox), query.path, request, reply),
  }),
  route({
    method: 'POST',
    path: '/files/bulk-download',
    needs: 'sandbox',
    summary: 'Downloads several files as a multipart form. Each path gets a part `file`, or `error` if reading failed.',
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
    summary:
      'Writes several files from a form. For each file, the field `files[i].path` comes before the field `files[i].file`.',
    streamsBody: true,
    replies: { 200: null },
    run: ({ sandbox, request }) => bulkUpload(filesOf(sandbox), request.raw),
  }),
]
