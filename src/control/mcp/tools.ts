// The tools that `/mcp` offers to models. Each tool makes one or two calls of our own API. Some tools wait until the sandbox
// has a lasting state, such as `started`.
import { setTimeout as delay } from 'node:timers/promises'
import Type, { type Static, type TObject } from 'typebox'
import { type OwnApi, ToolError } from './own-api.ts'

export type Tool = {
  name: string
  description: string
  input: TObject
  /** `reads`: the tool changes nothing. `destroys`: the tool removes something that cannot be restored. */
  effect?: 'reads' | 'destroys'
  /** Returns the text that the model reads. */
  run: (api: OwnApi, input: never) => Promise<string>
}

/** Maximum characters in the result of a tool. A model has a bounded context, so a longer result is cut in the middle. */
export const mostCharacters = 50_000
/** Maximum number of bytes of a file that one call of `read_file` returns. */
const mostFileBytes = 50_000

const Sandbox = Type.String({ minLength: 1, maxLength: 255, description: 'The id or the name of the sandbox.' })
const Path = (meaning: string) =>
  Type.String({
    minLength: 1,
    maxLength: 4096,
    description: `${meaning}: an absolute path, or relative to the home directory.`,
  })
const Seconds = (standard: number) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum: 3600, description: `Timeout in seconds. Default: ${standard}.` }))
const Account = {
  username: Type.Optional(Type.String({ maxLength: 1024, description: 'The user name for a private repository.' })),
  password: Type.Optional(
    Type.String({ maxLength: 16_384, description: 'The password or access token for a private repository.' }),
  ),
}

const tool = <I extends TObject>(
  row: Omit<Tool, 'run' | 'input'> & { input: I; run: (api: OwnApi, input: Static<I>) => Promise<string> },
): Tool => row as unknown as Tool

/** Shortens a text that is too long. Keeps its beginning and its end, and writes between them how much is missing. */
export const shorten = (text: string): string => {
  if (text.length <= mostCharacters) return text
  const half = mostCharacters / 2
  const missing = text.length - mostCharacters
  return `${text.slice(0, half)}\n[… ${missing} characters are left out here …]\n${text.slice(-half)}`
}

const at = (sandbox: string) => `/sandbox/${encodeURIComponent(sandbox)}`

type View = { id: string; name: string; state: string; errorReason?: string | null }
const describe = ({ id, name, state, errorReason }: View) =>
  JSON.stringify({ id, name, state, ...(errorReason ? { errorReason } : {}) })

/**
 * Longest time in milliseconds that `start_sandbox` and `stop_sandbox` wait for the new state. These tools read the sandbox's
 * state every `lookEveryMs`.
 */
const settleMs = 60_000
const lookEveryMs = 500

/** Waits until a sandbox is in a state that lasts, such as `started`, for at most `settleMs`. Returns the sandbox then. */
const settled = async (api: OwnApi, sandbox: string): Promise<View> => {
  const until = performance.now() + settleMs
  for (;;) {
    const view = (await api.control('GET', at(sandbox))) as View
    if (!/ing$|^pending_|^pulling_|^building_/.test(view.state) || performance.now() > until) return view
    await delay(lookEveryMs)
  }
}

type Ended = { exitCode: number; result: string }
const ended = (answer: unknown) => {
  const { exitCode, result } = answer as Ended
  return `exit code ${exitCode}\n${shorten(result)}`
}

/** Decodes the bytes of a file as text. Throws a ToolError for a binary file. */
const textOf = (bytes: Buffer, path: string): string => {
  if (bytes.includes(0))
    throw new ToolError(`${path} is a binary file. Read it with run_command, for example with xxd or file.`)
  return bytes.toString()
}

export const tools: readonly Tool[] = [
  tool({
    name: 'create_sandbox',
    description:
      'Creates an isolated Linux sandbox and waits until it is started. Delete it when it is no longer needed.',
    input: Type.Object({
      name: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
      snapshot: Type.Optional(
        Type.String({ maxLength: 255, description: 'The snapshot to use. Default: one with Python, Node.js and git.' }),
      ),
      env: Type.Optional(Type.Record(Type.String(), Type.String({ maxLength: 32_768 }), { maxProperties: 200 })),
      autoStopMinutes: Type.Optional(
        Type.Integer({
          minimum: 0,
          description: 'Minutes without activity after which the sandbox is stopped. 0: never.',
        }),
      ),
    }),
    run: async (api, { autoStopMinutes, ...given }) =>
      describe(
        (await api.control('POST', '/sandbox', {
          ...given,
          ...(autoStopMinutes === undefined ? {} : { autoStopInterval: autoStopMinutes }),
        })) as View,
      ),
  }),
  tool({
    name: 'list_sandboxes',
    description: 'Lists sandboxes of the organization, the most recently used first.',
    input: Type.Object({ limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })) }),
    effect: 'reads',
    run: async (api, { limit = 20 }) => {
      const { items } = (await api.control('GET', `/sandbox?limit=${limit}`)) as { items: View[] }
      return items.length === 0 ? 'There are no sandboxes.' : items.map(describe).join('\n')
    },
  }),
  tool({
    name: 'start_sandbox',
    description:
      'Starts a stopped or archived sandbox and waits until it is started. Its files are kept, its processes are not.',
    input: Type.Object({ sandbox: Sandbox }),
    run: async (api, { sandbox }) => {
      await api.control('POST', `${at(sandbox)}/start`)
      return describe(await settled(api, sandbox))
    },
  }),
  tool({
    name: 'stop_sandbox',
    description:
      'Stops a sandbox and waits until it is stopped. Its processes end; its files stay. start_sandbox starts it again.',
    input: Type.Object({ sandbox: Sandbox }),
    run: async (api, { sandbox }) => {
      await api.control('POST', `${at(sandbox)}/stop`)
      return describe(await settled(api, sandbox))
    },
  }),
  tool({
    name: 'delete_sandbox',
    description: 'Deletes a sandbox with all its files. This cannot be undone.',
    input: Type.Object({ sandbox: Sandbox }),
    effect: 'destroys',
    run: async (api, { sandbox }) => {
      await api.control('DELETE', at(sandbox))
      return 'The sandbox is being deleted.'
    },
  }),
  tool({
    name: 'run_command',
    description:
      'Runs a shell command in a sandbox and returns its exit code and output. Background processes must redirect their output.',
    input: Type.Object({
      sandbox: Sandbox,
      command: Type.String({ minLength: 1, maxLength: 1024 ** 2 }),
      directory: Type.Optional(Path('The working directory')),
      timeoutSeconds: Seconds(60),
    }),
    run: async (api, { sandbox, command, directory, timeoutSeconds = 60 }) =>
      ended(
        await api.toolbox(sandbox, 'POST', '/process/execute', {
          body: { command, timeout: timeoutSeconds, ...(directory === undefined ? {} : { cwd: directory }) },
          timeoutSeconds,
        }),
      ),
  }),
  tool({
    name: 'run_code',
    description: 'Runs code in a sandbox in a new process, and returns its exit code and output.',
    input: Type.Object({
      sandbox: Sandbox,
      code: Type.String({ minLength: 1, maxLength: 1024 ** 2 }),
      language: Type.Optional(Type.Enum(['python', 'javascript', 'typescript'])),
      timeoutSeconds: Seconds(60),
    }),
    run: async (api, { sandbox, code, language = 'python', timeoutSeconds = 60 }) =>
      ended(
        await api.toolbox(sandbox, 'POST', '/process/code-run', {
          body: { code, language, timeout: timeoutSeconds },
          timeoutSeconds,
        }),
      ),
  }),
  tool({
    name: 'list_files',
    description: 'Lists the files of a directory in a sandbox.',
    input: Type.Object({ sandbox: Sandbox, path: Type.Optional(Path('The directory')) }),
    effect: 'reads',
    run: async (api, { sandbox, path = '.' }) => {
      const files = (await api.toolbox(sandbox, 'GET', '/files', { query: { path } })) as {
        name: string
        size: number
        isDir: boolean
      }[]
      const lines = files.map(({ name, size, isDir }) => (isDir ? `${name}/` : `${name}\t${size} bytes`))
      return lines.length === 0 ? 'The directory is empty.' : shorten(lines.join('\n'))
    },
  }),
  tool({
    name: 'read_file',
    description: `Reads at most ${mostFileBytes} bytes of a text file in a sandbox, starting at byte \`offset\`.`,
    input: Type.Object({
      sandbox: Sandbox,
      path: Path('The file'),
      offset: Type.Optional(
        Type.Integer({ minimum: 0, description: 'The position of the first byte to read. Default: 0.' }),
      ),
    }),
    effect: 'reads',
    run: async (api, { sandbox, path, offset = 0 }) => {
      const range = `bytes=${offset}-${offset + mostFileBytes - 1}`
      const { bytes, headers } = await api.toolboxBytes(sandbox, 'GET', '/files/download', {
        query: { path },
        headers: { range },
      })
      const size = Number(headers.get('content-range')?.split('/')[1] ?? bytes.length)
      const next = offset + bytes.length
      const more = next < size ? `\n[The file has ${size} bytes. Continue with offset ${next}.]` : ''
      return `${textOf(bytes, path)}${more}`
    },
  }),
  tool({
    name: 'write_file',
    description: 'Writes a text file in a sandbox. Creates missing parent directories, and replaces an existing file.',
    input: Type.Object({
      sandbox: Sandbox,
      path: Path('The file'),
      content: Type.String({ maxLength: 4 * 1024 ** 2 }),
    }),
    run: async (api, { sandbox, path, content }) => {
      await api.toolbox(sandbox, 'POST', '/files/upload', { query: { path }, text: content })
      return `${path} has ${Buffer.byteLength(content)} bytes now.`
    },
  }),
  tool({
    name: 'preview_link',
    description: 'Creates a link that opens a port of a sandbox in a browser. Anyone with the link can open it.',
    input: Type.Object({
      sandbox: Sandbox,
      port: Type.Integer({ minimum: 1, maximum: 65_535 }),
      expiresInSeconds: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: 86_400,
          description: 'The lifetime of the link in seconds. Default: 3600.',
        }),
      ),
    }),
    run: async (api, { sandbox, port, expiresInSeconds = 3600 }) => {
      const path = `${at(sandbox)}/ports/${port}/signed-preview-url?expiresInSeconds=${expiresInSeconds}`
      return ((await api.control('GET', path)) as { url: string }).url
    },
  }),
  tool({
    name: 'git_clone',
    description: 'Clones a git repository into a directory of a sandbox.',
    input: Type.Object({
      sandbox: Sandbox,
      url: Type.String({ minLength: 1, maxLength: 8192 }),
      path: Path('The new directory'),
      branch: Type.Optional(Type.String({ maxLength: 1024 })),
      ...Account,
    }),
    run: async (api, { sandbox, ...body }) => {
      await api.toolbox(sandbox, 'POST', '/git/clone', { body, timeoutSeconds: 600 })
      return `The repository is in ${body.path}.`
    },
  }),
  tool({
    name: 'git_status',
    description: 'Shows the branch and the changed files of a git repository in a sandbox.',
    input: Type.Object({ sandbox: Sandbox, path: Path('The repository') }),
    effect: 'reads',
    run: async (api, { sandbox, path }) =>
      shorten(JSON.stringify(await api.toolbox(sandbox, 'GET', '/git/status', { query: { path } }))),
  }),
  tool({
    name: 'git_commit',
    description: 'Commits files of a git repository in a sandbox.',
    input: Type.Object({
      sandbox: Sandbox,
      path: Path('The repository'),
      message: Type.String({ minLength: 1, maxLength: 65_536 }),
      files: Type.Optional(
        Type.Array(Type.String({ minLength: 1, maxLength: 4096 }), {
          ...{ minItems: 1, maxItems: 4096 },
          description: 'Paths in the repository. Default: all changed files.',
        }),
      ),
      author: Type.String({ minLength: 1, maxLength: 1024, description: 'The name of the author.' }),
      email: Type.String({ minLength: 1, maxLength: 1024 }),
    }),
    run: async (api, { sandbox, files = ['.'], ...body }) => {
      await api.toolbox(sandbox, 'POST', '/git/add', { body: { path: body.path, files } })
      const commit = await api.toolbox(sandbox, 'POST', '/git/commit', { body })
      return `The new commit is ${(commit as { hash: string }).hash}.`
    },
  }),
  tool({
    name: 'git_push',
    description: 'Pushes the current branch of a git repository in a sandbox.',
    input: Type.Object({ sandbox: Sandbox, path: Path('The repository'), ...Account }),
    run: async (api, { sandbox, ...body }) => {
      await api.toolbox(sandbox, 'POST', '/git/push', { body, timeoutSeconds: 600 })
      return 'The branch is pushed.'
    },
  }),
  tool({
    name: 'git_pull',
    description: 'Pulls the current branch of a git repository in a sandbox.',
    input: Type.Object({ sandbox: Sandbox, path: Path('The repository'), ...Account }),
    run: async (api, { sandbox, ...body }) => {
      await api.toolbox(sandbox, 'POST', '/git/pull', { body, timeoutSeconds: 600 })
      return 'The branch is up to date.'
    },
  }),
]
