/** The nonce that the content security policy requires for style elements that scripts add. Undefined if it requires none. */
export const cspNonce: string | undefined =
  document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce || undefined
