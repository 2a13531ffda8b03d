// What other rooms may ask about sandboxes without doing anything to them; what is done, the verbs do.
export { findByPreviewToken } from './preview-tokens.ts'
export {
  findSandboxById,
  forgetSandboxesIn,
  getSandbox,
  hasLiveSandboxesIn,
  listForRunner,
  writeOtelEndpointIn,
} from './store.ts'
