// Compiles TypeScript to CommonJS, or to an ES module if it has top-level `await`. An image may have no compiler, so the runner
// starts a compiler outside the sandbox, without privileges (src/runner/gate-link/compiler.ts).
import { Budget } from '#src/kit/budget.ts'
import { FairQueue } from '#src/kit/queue.ts'
import { Problem } from '#src/problems.ts'
import type { Deadline } from '#src/toolbox/running/deadline.ts'
import type { Compiler } from '../compiler.ts'

const atOnce = 2
/** Waiting compilations: per organization, in total, and the share that each organization always gets. */
const waitingAtMost = { each: 16, all: 64, sure: 2 }
const sourceBytes = 1024 * 1024

/**
 * The queue of compilations. The organization with the fewest running compilations is next, so waiting compilations delay only
 * their own organization.
 */
export const compilerQueue = (running = atOnce, most = waitingAtMost): FairQueue =>
  new FairQueue({
    atOnce: running,
    waiting: {
      places: new Budget(most),
      full: () => new Problem('rate_limited', 'Too much TypeScript code is waiting to be compiled. Try again.'),
    },
    pick: 'least served',
  })

const queue = compilerQueue()

type Transpiled = { javascript: string; isModule: boolean } | { complaint: string }

/** Exit code of the compiler esbuild if the compiled code has errors. */
const foundWrong = 1
const needsModule = /Top-level await is currently not supported with the "cjs" output format/
const tooMuch = 'The TypeScript compiler gave up: the code is too large or too deeply nested.\n'

/**
 * Compiles code. If the code has errors, returns them in `complaint`. These errors become the output of the run. Throws the reason
 * of the deadline's signal if the signal is aborted.
 */
export const transpile = async (
  { compile }: Compiler,
  owner: string,
  source: string,
  deadline: Deadline,
  importsFiles = false,
): Promise<Transpiled> => {
  if (Buffer.byteLength(source) > sourceBytes)
    throw new Problem('too_large', 'TypeScript code must not be larger than 1 MiB.')
  using _ = await queue.take(owner, deadline.signal)
  deadline.signal.throwIfAborted()
  const script = await compile(source, importsFiles ? 'files' : 'cjs', deadline)
  const isModule = script.code === foundWrong && needsModule.test(script.errors)
  const { code, javascript, errors } = isModule ? await compile(source, 'esm', deadline) : script
  if (code === 0) return { javascript, isModule }
  return { complaint: code === foundWrong && errors !== '' ? errors : tooMuch }
}
