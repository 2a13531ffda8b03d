// Serves the WebSocket of one execution. The close code says how the execution ended.
import type { WebSocket } from 'ws'
import { closeWith, keepAlive, sendWhole } from '#src/http/socket.ts'
import { readPart } from '#src/http/validate.ts'
import { Problem } from '#src/problems.ts'
import { checkEnvironment } from '#src/toolbox/running/environment.ts'
import { type OutOfMemory, watchMemory } from '#src/toolbox/running/out-of-memory.ts'
import type { Exit } from '../agent/agent.ts'
import { heldBodies } from '../held-bodies.ts'
import { asTold } from '../refusals.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import { defaultContext, readyContext } from './contexts.ts'
import { type Lane, LaneFull, runInLane } from './lanes.ts'
import { type Ending, outwaitOthers, runCode, type Take } from './run.ts'
import { ExecuteRequest } from './schemas.ts'

const defaultTimeoutSeconds = 600
/** Maximum time in ms that a client may take to send its request. */
const patienceMs = 60_000

const closeCodes = { done: 1000, badFrame: 1002, refused: 1008, failed: 1011, busy: 1013, timeout: 4008 } as const

/** An error whose code and reason close the socket. */
class Refusal extends Error {
  readonly code: number

  constructor(code: number, reason: string) {
    super(reason)
    this.code = code
  }
}

const firstFrame = (socket: WebSocket): Promise<string> =>
  new Promise((resolve, reject) => {
    const refuse = (reason: string) => reject(new Refusal(closeCodes.badFrame, reason))
    const timer = setTimeout(() => refuse('no request came'), patienceMs)
    socket.once('message', (data, isBinary) => {
      if (isBinary) refuse('the request must be a text frame')
      else resolve(data.toString())
    })
    socket.once('close', () => refuse('closed'))
    socket.once('message', () => clearTimeout(timer)).once('close', () => clearTimeout(timer))
  })

const readRequest = (text: string): ExecuteRequest => {
  let given: unknown
  try {
    given = JSON.parse(text)
  } catch {
    throw new Refusal(closeCodes.badFrame, 'the request must be JSON')
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new Refusal(closeCodes.badFrame, 'the request must be a JSON object')
  }
  try {
    const request = readPart(ExecuteRequest, 'body', given) as ExecuteRequest
    checkEnvironment(request.envs ?? {})
    return request
  } catch (error) {
    if (error instanceof Problem) throw new Refusal(closeCodes.refused, error.message.replace(/^body\./, ''))
    throw error
  }
}

const deathOf = ({ exitCode, signal }: Exit, shortage: OutOfMemory | undefined): string => {
  if (signal === null) return `The Python of this context ended with exit code ${exitCode}.`
  const why = shortage === undefined ? '' : `: out of memory, the limit is ${shortage.limit}`
  return `The Python of this context was killed by signal ${signal}${why}.`
}

const tell = (socket: WebSocket, message: object) => sendWhole(socket, JSON.stringify(message))

/** The value of a run's last expression, by media type. worker.py sends it after a run without an error. */
type Display = { formats?: Record<string, string> }

/** Sends output to the client. After the client has disconnected, output is dropped. */
const taker =
  (socket: WebSocket, display: Display): Take =>
  async (output) => {
    if (output.type === 'display') display.formats = output.formats
    else if (output.type === 'lost') {
      await tell(socket, { type: 'stderr', text: `\n[${output.bytes} bytes of output were lost]\n` })
    } else await tell(socket, output)
  }

type FindOutOfMemory = ReturnType<typeof watchMemory>

const tellEnding = async (
  socket: WebSocket,
  ending: Ending,
  lane: Lane,
  { findOutOfMemory, formats }: { findOutOfMemory: FindOutOfMemory } & Display,
): Promise<void> => {
  if (ending.how === 'done') {
    const display = formats === undefined ? {} : { display: formats }
    // Python still runs, but the kernel may have killed a process that the code had started.
    const shortage = await findOutOfMemory(0)
    if (shortage !== undefined) await tell(socket, { type: 'stderr', text: shortage.line })
    const oom = shortage === undefined ? {} : { oom: shortage.oom }
    await tell(socket, { type: 'control', text: 'completed', ...display, ...oom })
    return closeWith(socket, closeCodes.done, '')
  }
  if (ending.how === 'timeout') return closeWith(socket, closeCodes.timeout, 'execution timed out')
  const shortage = lane.isClosed ? undefined : await findOutOfMemory()
  const value = lane.isClosed ? 'The context was deleted.' : deathOf(ending.exit, shortage)
  if (shortage !== undefined) await tell(socket, { type: 'stderr', text: shortage.line })
  await tell(socket, {
    type: 'error',
    name: lane.isClosed ? 'ContextDeleted' : 'InterpreterDied',
    value,
    traceback: '',
    ...(shortage === undefined ? {} : { oom: shortage.oom }),
  })
  closeWith(socket, closeCodes.failed, value)
}

/** Runs the code. No other execution of the context runs at this time. */
const runInTurn = async (socket: WebSocket, sandbox: ToolboxSandbox, request: ExecuteRequest, lane: Lane) => {
  // If the client has disconnected while its run waited in the queue, do not run the code.
  if (socket.readyState !== socket.OPEN) return
  const { jobs } = sandbox.agent
  const contextId = request.contextId || defaultContext
  if (lane.isClosed) throw new Refusal(closeCodes.refused, `context not found: ${contextId}`)
  let context = await readyContext(sandbox, contextId)
  while (await outwaitOthers(jobs, context)) context = await readyContext(sandbox, contextId)
  const { code, envs, timeout } = request
  const run = { code, envs: envs ?? {}, timeoutSeconds: timeout ?? defaultTimeoutSeconds }
  const findOutOfMemory = watchMemory(sandbox)
  const display: Display = {}
  const ending = await runCode(jobs, context, run, taker(socket, display))
  await tellEnding(socket, ending, lane, { findOutOfMemory, ...display })
}

export const execute = async (socket: WebSocket, sandbox: ToolboxSandbox): Promise<void> => {
  keepAlive(socket)
  try {
    const text = await firstFrame(socket)
    const request = readRequest(text)
    // While the code waits and runs, its size counts towards the memory that this gate gives to calls of the sandbox
    // (`heldBodies`).
    if (!heldBodies.take(sandbox.id, text.length))
      throw new Refusal(closeCodes.busy, 'too much code waits to be executed')
    try {
      const contextId = request.contextId || defaultContext
      await runInLane(sandbox, contextId, (lane) => runInTurn(socket, sandbox, request, lane))
    } finally {
      heldBodies.give(sandbox.id, text.length)
    }
  } catch (error) {
    if (error instanceof Refusal) return closeWith(socket, error.code, error.message)
    if (error instanceof LaneFull) return closeWith(socket, closeCodes.busy, error.message)
    const problem = asTold(error)
    if (problem.code === 'not_found') return closeWith(socket, closeCodes.refused, problem.message)
    await tell(socket, { type: 'error', name: 'InterpreterUnavailable', value: problem.message, traceback: '' })
    closeWith(socket, closeCodes.failed, problem.message)
  }
}
