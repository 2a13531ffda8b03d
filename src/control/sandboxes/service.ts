// What other rooms may ask about sandboxes without doing anything to them; what is done, the verbs do.
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
