// The path and the URL of Alcove's own OpenID Connect issuer.
export const issuerPath = '/oidc'
export const issuerUrl = ({ publicUrl }: { publicUrl: string }): string => `${publicUrl}${issuerPath}`
