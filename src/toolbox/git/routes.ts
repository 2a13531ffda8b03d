import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { deadlineOf } from '#src/toolbox/running/deadline.ts'
import { route, type ToolboxSandbox } from '../sandbox.ts'
import { checkout, createBranch, deleteBranch, listBranches } from './branches.ts'
import { clone, init } from './clone.ts'
import { add, commit, historyLength, listHistory, reset, restore } from './commits.ts'
import { getConfig, placeOf, setConfig, storeCredentials } from './config.ts'
import { addRemote, listRemotes } from './remotes.ts'
import { type Git, gitIn } from './run-git.ts'
import {
  AddRemoteRequest,
  AddRequest,
  BranchList,
  BranchRequest,
  CheckoutRequest,
  CloneRequest,
  CommitInfo,
  CommitRequest,
  CommitResponse,
  ConfigQuestion,
  ConfigureUserRequest,
  ConfigValue,
  InitRequest,
  InRepository,
  PullRequest,
  PushRequest,
  RemoteList,
  ResetRequest,
  RestoreRequest,
  SetConfigRequest,
  Status,
  StoreCredentialsRequest,
} from './schemas.ts'
import { getStatus } from './status.ts'
import { pull, push } from './sync.ts'

/** Timeout in seconds of calls that work within the sandbox. The hooks of the repository run within this time. */
const localSeconds = 5 * 60
/** Timeout of calls that contact a remote, in seconds. */
const remoteSeconds = 30 * 60

type Place = { sandbox: ToolboxSandbox; reply: FastifyReply }
/** `in` returns an object that runs git in `directory`. Default: the user's home. */
type Room = { in: (directory?: string) => Git }

/** Runs `work` with git. Ends git at the timeout, or when the caller disconnects. */
const within = async <T>({ sandbox, reply }: Place, seconds: number, work: (git: Room) => Promise<T>): Promise<T> => {
  using deadline = deadlineOf(reply, { seconds })
  return await work({ in: (directory) => gitIn(sandbox, deadline, directory) })
}

export const gitRoutes = [
  route({
    method: 'POST',
    path: '/git/clone',
    needs: 'sandbox',
    summary: 'Clones a Git repository. The credentials are used only for this call.',
    body: CloneRequest,
    replies: { 200: null },
    run: (call) => within(call, remoteSeconds, (git) => clone(git.in(), git.in(call.body.path), call.body)),
  }),
  route({
    method: 'POST',
    path: '/git/init',
    needs: 'sandbox',
    summary: 'Creates an empty Git repository.',
    body: InitRequest,
    replies: { 200: null },
    run: (call) => within(call, localSeconds, (git) => init(git.in(), call.body)),
  }),
  route({
    method: 'POST',
    path: '/git/add',
    needs: 'sandbox',
    summary: 'Stages files and directories for the next commit.',
    body: AddRequest,
    replies: { 200: null },
    run: (call) => within(call, localSeconds, (git) => add(git.in(call.body.path), call.body)),
  }),
  route({
    method: 'POST',
    path: '/git/commit',
    needs: 'sandbox',
    summary: 'Commits the staged changes and returns the hash of the commit.',
    body: CommitRequest,
    replies: { 200: CommitResponse },
    run: (call) => within(call, localSeconds, (git) => commit(git.in(call.body.path), call.body)),
  }),
  route({
    method: 'GET',
    path: '/git/history',
    needs: 'sandbox',
    summary: `Lists the commits that HEAD contains, newest first, at most ${historyLength}.`,
    query: InRepository,
    replies: { 200: Type.Array(CommitInfo) },
    run: (call) => within(call, localSeconds, (git) => listHistory(git.in(call.query.path))),
  }),
  route({
    method: 'GET',
    path: '/git/status',
    needs: 'sandbox',
    summary: 'Returns the current branch, how far it is ahead of and behind its upstream, and the changed files.',
    query: InRepository,
    replies: { 200: Status },
    run: (call) => within(call, localSeconds, (git) => getStatus(git.in(call.query.path))),
  }),
  route({
    method: 'GET',
    path: '/git/branches',
    needs: 'sandbox',
    summary: 'Lists the local branches and names the current branch.',
    query: InRepository,
    replies: { 200: BranchList },
    run: (call) => within(call, localSeconds, (git) => listBranches(git.in(call.query.path))),
  }),
  route({
    method: 'POST',
    path: '/git/branches',
    needs: 'sandbox',
    summary: 'Creates a branch at HEAD without switching to it.',
    body: BranchRequest,
    replies: { 201: null },
    run: (call) => within(call, localSeconds, (git) => createBranch(git.in(call.body.path), call.body.name)),
  }),
  route({
    method: 'DELETE',
    path: '/git/branches',
    needs: 'sandbox',
    summary: 'Deletes a local branch, even an unmerged one. Git refuses to delete the current branch.',
    body: BranchRequest,
    replies: { 204: null },
    run: (call) => within(call, localSeconds, (git) => deleteBranch(git.in(call.body.path), call.body.name)),
  }),
  route({
    method: 'POST',
    path: '/git/checkout',
    needs: 'sandbox',
    summary: 'Checks out a branch, tag or commit.',
    body: CheckoutRequest,
    replies: { 200: null },
    run: (call) => within(call, localSeconds, (git) => checkout(git.in(call.body.path), call.body.branch)),
  }),
  route({
    method: 'POST',
    path: '/git/reset',
    needs: 'sandbox',
    summary:
      'Resets HEAD, the index and the work tree according to `mode`. With `files`, resets only their index entries.',
    body: ResetRequest,
    replies: { 200: null },
    run: (call) => within(call, localSeconds, (git) => reset(git.in(call.body.path), call.body)),
  }),
  route({
    method: 'POST',
    path: '/git/restore',
    needs: 'sandbox',
    summary: 'Restores files in the work tree, the index or both. Default: in the work tree.',
    body: RestoreRequest,
    replies: { 200: null },
    run: (call) => within(call, localSeconds, (git) => restore(git.in(call.body.path), call.body)),
  }),
  route({
    method: 'POST',
    path: '/git/pull',
    needs: 'sandbox',
    summary: 'Fetches from a remote and merges. The credentials are used only for this call.',
    body: PullRequest,
    replies: { 200: null },
    run: (call) => within(call, remoteSeconds, (git) => pull(git.in(call.body.path), call.body)),
  }),
  route({
    method: 'POST',
    path: '/git/push',
    needs: 'sandbox',
    summary: 'Pushes a branch to a remote. The credentials are used only for this call.',
    body: PushRequest,
    replies: { 200: null },
    run: (call) => within(call, remoteSeconds, (git) => push(git.in(call.body.path), call.body)),
  }),
  route({
    method: 'GET',
    path: '/git/remotes',
    needs: 'sandbox',
    summary: 'Lists the configured remotes and their URLs.',
    query: InRepository,
    replies: { 200: RemoteList },
    run: (call) => within(call, localSeconds, (git) => listRemotes(git.in(call.query.path))),
  }),
  route({
    method: 'POST',
    path: '/git/remotes',
    needs: 'sandbox',
    summary: 'Adds a remote. With `overwrite`, replaces the URL of an existing remote.',
    body: AddRemoteRequest,
    replies: { 201: null },
    run: (call) => within(call, remoteSeconds, (git) => addRemote(git.in(call.body.path), call.body)),
  }),
  route({
    method: 'GET',
    path: '/git/config',
    needs: 'sandbox',
    summary: 'Returns the value of a Git setting, or null if the setting does not exist.',
    query: ConfigQuestion,
    replies: { 200: ConfigValue },
    run: (call) => {
      const { option, directory } = placeOf(call.query)
      return within(call, localSeconds, (git) => getConfig(git.in(directory), option, call.query.key))
    },
  }),
  route({
    method: 'POST',
    path: '/git/config',
    needs: 'sandbox',
    summary: 'Sets the value of a Git setting.',
    body: SetConfigRequest,
    replies: { 200: null },
    run: (call) => {
      const { option, directory } = placeOf(call.body)
      return within(call, localSeconds, (git) => setConfig(git.in(directory), option, call.body.key, call.body.value))
    },
  }),
  route({
    method: 'POST',
    path: '/git/config/user',
    needs: 'sandbox',
    summary: 'Sets the Git settings `user.name` and `user.email`.',
    body: ConfigureUserRequest,
    replies: { 200: null },
    run: (call) => {
      const { option, directory } = placeOf(call.body)
      return within(call, localSeconds, async (git) => {
        await setConfig(git.in(directory), option, 'user.name', call.body.name)
        await setConfig(git.in(directory), option, 'user.email', call.body.email)
      })
    },
  }),
  route({
    method: 'POST',
    path: '/git/credentials',
    needs: 'sandbox',
    summary: 'Stores Git credentials for a host in the sandbox, in plain text. Later Git calls use them by default.',
    body: StoreCredentialsRequest,
    replies: { 200: null },
    run: (call) => within(call, localSeconds, (git) => storeCredentials(git.in(), call.body)),
  }),
]
