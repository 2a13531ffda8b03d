// Where our own issuer is served.
export const issuerPath = '/oidc'
export const issuerUrl = ({ publicUrl }: { publicUrl: string }): string => `${publicUrl}${issuerPath}`
