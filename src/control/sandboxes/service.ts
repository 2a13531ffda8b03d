// Read-only functions about sandboxes for other rooms. The verbs change sandboxes.
export { forgiveSilence } from './record/notes.ts'
export {
  type By,
  findSandbox,
  findSandboxById,
  forgetSandboxesIn,
  getSandbox,
  hasLiveSandboxesIn,
  insertSandbox,
  listForRunner,
  nameTaken,
  touch,
  withRunner,
  writeOtelEndpointIn,
  writeState,
} from './record/store.ts'
