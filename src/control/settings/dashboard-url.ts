// The address of the dashboard that control serves.
export const dashboardPath = '/dashboard/'
export const dashboardUrl = ({ publicUrl }: { publicUrl: string }): string => `${publicUrl}${dashboardPath}`

/** The web page on which users use this server: the operator's own page, if it is configured, otherwise the dashboard. */
export const pageForPeople = (settings: { publicUrl: string; dashboardUrl: string | undefined }): string =>
  settings.dashboardUrl ?? dashboardUrl(settings)
