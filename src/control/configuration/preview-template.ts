// Where a port of a sandbox is seen: one host name for each, below the proxy's own.
export const previewTemplate = (proxyUrl: string): string => {
  const { protocol, host } = new URL(proxyUrl)
  return `${protocol}//{{PORT}}-{{sandboxId}}.${host}`
}
