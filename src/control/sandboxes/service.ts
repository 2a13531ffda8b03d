// The functions of this module that other modules may use.
export {
  dropSecret,
  forgiveSilence,
  listWithSecret,
  listWithSecretsOn,
  writeVariables,
} from './record/notes.ts'
export {
  type By,
  findSandbox,
  findSandboxById,
  forgetSandboxesIn,
  getSandbox,
  hasLiveSandboxesIn,
  insertSandbox,
  listForRunner,
  lockSandbox,
  nameTaken,
  touch,
  withRunner,
  writeOtelEndpointIn,
  writeState,
} from './record/store.ts'
