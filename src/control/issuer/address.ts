// The address of our own issuer.
export const issuerPath = '/oidc'
export const issuerUrl = ({ publicUrl }: { publicUrl: string }): string => `${publicUrl}${issuerPath}`
