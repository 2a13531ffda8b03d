// What other rooms may ask about sandboxes without doing anything to them; what is done, the verbs do.
export {
  findByPreviewToken,
  findSandboxById,
  forgetSandboxesIn,
  getSandbox,
  hasLiveSandboxesIn,
  listForRunner,
  writeOtelEndpointIn,
} from './store.ts'
