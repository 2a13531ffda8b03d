/** The value that the content security policy asks of style elements which scripts add. Undefined: none is asked. */
export const cspNonce: string | undefined =
  document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce || undefined
