// Where our own issuer is.
export const issuerPath = '/oidc'
export const issuerUrl = ({ publicUrl }: { publicUrl: string }): string => `${publicUrl}${issuerPath}`
