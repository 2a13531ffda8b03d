// Functions that read sandboxes, for other modules. Only the verbs change sandboxes.
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
