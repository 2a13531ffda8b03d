/**
 * The nonce of the page. The content security policy allows a script to add a style element only with this nonce. Undefined if the
 * policy requires no nonce.
 */
export const cspNonce: string | undefined =
  document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce || undefined
