// Runs one call of computer use. A Python program of `inside/` runs in the sandbox, as the sandbox's user, and prints an answer.
// The sandbox is not trusted, so the answer's time, size and form are checked.
import { readFileSync } from 'node:fs'
import type { FastifyReply } from 'fastify'
import Type, { type Static, type TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import { findTooMuch } from '#src/http/json-text.ts'
import { closed } from '#src/http/validate.ts'
import { Budget } from '#src/kit/budget.ts'
import { Problem, type ProblemCode } from '#src/problems.ts'
import { StartFailed } from '../agent/agent.ts'
import { environmentOf } from '../agent/environment.ts'
import { deadlineOf } from '../running/deadline.ts'
import { BoundedOutput } from '../running/output.ts'
import { runToEnd } from '../running/run.ts'
import { callersFault } from '../running/start-failure.ts'
import type { ToolboxSandbox } from '../sandbox.ts'

const read = (name: string) => readFileSync(new URL(`./inside/${name}.py`, import.meta.url), 'utf8')
const base = read('base')
const sources = {
  desktop: `${base}${read('desktop')}`,
  screen: `${base}${read('screen')}`,
  recordings: `${base}${read('recordings')}`,
  accessibility: `${base}${read('accessibility')}`,
}

/** Makes Python read its program from standard input, so that lists of processes do not show the program. */
const bootstrap = [
  'import json,sys',
  'q=json.load(sys.stdin)',
  'SOURCE=q["source"]',
  'exec(compile(SOURCE,"computer-use","exec"))',
  'main(q["call"],q["given"])',
].join('\n')

/** Maximum number of calls of one sandbox that run at the same time. */
export const mostCalls = 8
const running = new Budget({ each: mostCalls })

const answerBytes = 16 * 1024 * 1024
const complaintBytes = 16 * 1024
const mostValues = 100_000
const mostEscapes = 200_000
const standardSeconds = 30

/** The problem for each kind of refusal of the programs in `inside/`. */
const refusals: Record<string, ProblemCode> = {
  bad: 'bad_request',
  failed: 'unprocessable',
  late: 'timeout',
  many: 'rate_limited',
  stopped: 'conflict',
  unknown: 'not_found',
}

const Refusal = Type.Object({ refusal: Type.String(), message: Type.String({ maxLength: 4000 }) })
const isRefusal = Compile(Refusal)

/** Returns the error for a call that needs `program` if the sandbox does not have that program. */
const lacks = (program: string, cause?: unknown) =>
  new Problem(
    'unprocessable',
    `This sandbox has no ${program.slice(0, 100)}. The snapshot "desktop" has all that computer use needs.`,
    { cause },
  )

const refusalOf = ({ refusal, message }: Static<typeof Refusal>): Problem =>
  refusal === 'missing'
    ? lacks(message)
    : new Problem(Object.hasOwn(refusals, refusal) ? refusals[refusal]! : 'unprocessable', message)

const validators = new WeakMap<TSchema, Validator>()

const validatorOf = (schema: TSchema): Validator => {
  const known = validators.get(schema)
  if (known !== undefined) return known
  const made = Compile(closed(JSON.parse(JSON.stringify(Type.Object({ result: schema })))) as TSchema)
  validators.set(schema, made)
  return made
}

const malformed = (cause?: unknown) =>
  new Problem('unprocessable', 'The programs of the desktop gave no answer that can be read.', { cause })

/**
 * Whether a JSON text has so many backslashes that parsing would block this process. Honest long answers are base64, which has
 * none.
 */
const hasManyEscapes = (text: string): boolean => {
  let count = 0
  for (let at = text.indexOf('\\'); at !== -1 && count <= mostEscapes; at = text.indexOf('\\', at + 1)) count += 1
  return count > mostEscapes
}

/** Reads an answer, which must have exactly the fields of the schema. Throws a Problem for a refusal or a malformed answer. */
export const readAnswer = <S extends TSchema>(text: string, schema: S): Static<S> => {
  if (hasManyEscapes(text) || findTooMuch(text, mostValues) !== undefined) throw malformed()
  try {
    const said: unknown = JSON.parse(text)
    if (isRefusal.Check(said)) throw refusalOf(said)
    if (!validatorOf(schema).Check(said)) throw malformed()
    return (said as { result: Static<S> }).result
  } catch (error) {
    throw error instanceof Problem ? error : malformed(error)
  }
}

export type Asked<S extends TSchema> = {
  of: keyof typeof sources
  call: string
  given?: Record<string, unknown>
  answer: S
  seconds?: number
}

/** Runs the call. Throws a Problem: 408 if the call takes too long, 422 if a program is missing or the answer is malformed. */
export const ask = async <S extends TSchema>(
  { sandbox, reply }: { sandbox: ToolboxSandbox; reply: FastifyReply },
  { of, call, given = {}, answer, seconds = standardSeconds }: Asked<S>,
): Promise<Static<S>> => {
  if (!running.take(sandbox.id)) {
    throw new Problem('rate_limited', `This sandbox has ${mostCalls} calls of computer use that are not answered yet.`)
  }
  try {
    using deadline = deadlineOf(reply, { seconds })
    using stdout = new BoundedOutput(sandbox.assignment.organizationId, answerBytes)
    using stderr = new BoundedOutput(sandbox.assignment.organizationId, complaintBytes)
    const spec = {
      // -I isolates Python: no module in the working directory replaces one of the standard library.
      argv: ['python3', '-I', '-c', bootstrap],
      env: environmentOf(sandbox, { LC_ALL: 'C.UTF-8' }),
      cwd: '/',
      user: sandbox.assignment.user,
      stdin: Buffer.from(JSON.stringify({ source: sources[of], call, given })),
      mergeOutput: false,
    }
    const { exitCode } = await runToEnd(sandbox.agent, spec, deadline, (data, stream) =>
      (stream === 'stdout' ? stdout : stderr).add(data),
    ).catch((error) => {
      if (!(error instanceof StartFailed)) throw error
      throw callersFault(error, spec) ?? lacks('python3', error)
    })
    if (stdout.droppedBytes > 0) throw new Problem('unprocessable', 'The answer of the desktop is too long.')
    if (exitCode !== 0) {
      const words = stderr.text().trim().split('\n').at(-1)!.slice(0, 500)
      throw new Problem('unprocessable', `The call failed in the sandbox: ${words || `exit code ${exitCode}`}.`)
    }
    return readAnswer(stdout.text(), answer)
  } finally {
    running.give(sandbox.id)
  }
}
