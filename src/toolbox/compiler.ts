import type { Compiled } from '#src/wire/gate-link.ts'

/** Compiles TypeScript outside of the sandbox. The program that serves the toolbox provides this compiler. */
export type Compiler = {
  /**
   * Compiles source text to a module format. The format `files` is for code that imports TypeScript files. This format is like
   * `cjs`, but with `require` in place of dynamic imports, because Node's `import` cannot load TypeScript files.
   */
  compile: (source: string, format: 'cjs' | 'esm' | 'files', limits: { signal: AbortSignal }) => Promise<Compiled>
  /** Returns the source text of a function that removes types from a file inside the sandbox, where no compiler exists. */
  typeRemover: () => Promise<string>
}
