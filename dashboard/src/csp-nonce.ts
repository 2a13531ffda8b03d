/** The nonce that the content security policy demands of style elements. Undefined if the policy demands no nonce. */
export const cspNonce: string | undefined =
  document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce || undefined
