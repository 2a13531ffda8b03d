import type { Compiled } from '#src/wire/gate-link.ts'

/** Compiles TypeScript outside of the sandbox. The program that serves the toolbox provides it. */
export type Compiler = {
  /** `files`: like `cjs`, but dynamic imports become `require`, because Node cannot import TypeScript. */
  compile: (source: string, format: 'cjs' | 'esm' | 'files', limits: { signal: AbortSignal }) => Promise<Compiled>
  /** The source text of a function that removes types from a file inside the sandbox, where there is no compiler. */
  typeRemover: () => Promise<string>
}
