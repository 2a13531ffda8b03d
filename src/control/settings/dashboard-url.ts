// The address of the dashboard that control serves itself.
export const dashboardPath = '/dashboard/'
export const dashboardUrl = ({ publicUrl }: { publicUrl: string }): string => `${publicUrl}${dashboardPath}`
