// The URL of the dashboard that control serves.
export const dashboardPath = '/dashboard/'
export const dashboardUrl = ({ publicUrl }: { publicUrl: string }): string => `${publicUrl}${dashboardPath}`

/**
 * Returns the web page on which people use this server: the operator's own page if it is configured, otherwise the
 * dashboard.
 */
export const pageForPeople = (settings: { publicUrl: string; dashboardUrl: string | undefined }): string =>
  settings.dashboardUrl ?? dashboardUrl(settings)
