// For tests: the sandbox of a call, with stand-ins for the functions that its runner provides.
import { compile } from '#src/runner/gate-link/compiler.ts'
import { typeRemover } from '#src/runner/gate-link/type-remover.ts'
import type { SandboxHere } from '#src/wire/gate-link.ts'
import type { Called } from '../server.ts'

export const calledFor = (sandbox: SandboxHere, more: Partial<Called> = {}): Called => ({
  sandbox,
  measure: async () => undefined,
  compiler: { compile, typeRemover },
  changeVariables: async () => undefined,
  ...more,
})
