// The address of the dashboard that control serves itself.
export const dashboardPath = '/dashboard/'
export const dashboardUrl = ({ publicUrl }: { publicUrl: string }): string => `${publicUrl}${dashboardPath}`

/** The page where people use this server: the operator's own, or the dashboard. */
export const pageForPeople = (settings: { publicUrl: string; dashboardUrl: string | undefined }): string =>
  settings.dashboardUrl ?? dashboardUrl(settings)
