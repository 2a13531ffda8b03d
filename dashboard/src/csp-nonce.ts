/** The nonce that the content security policy demands of style elements. Undefined if it demands none. */
export const cspNonce: string | undefined =
  document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce || undefined
