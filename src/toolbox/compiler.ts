import type { Compiled } from '#src/wire/gate-link.ts'

/** What compiles TypeScript outside of the sandbox; the program that serves the toolbox brings it. */
export type Compiler = {
  /** `files`: like cjs, and what the code imports when it runs is required, as Node cannot import TypeScript. */
  compile: (source: string, format: 'cjs' | 'esm' | 'files', limits: { signal: AbortSignal }) => Promise<Compiled>
  /** An expression: a function that takes types out of a file inside the sandbox, where the compiler is not. */
  typeRemover: () => Promise<string>
}
