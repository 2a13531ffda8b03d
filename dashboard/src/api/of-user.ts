/**
 * Whether a call is about the user and not about one organization. Such a call must not name the organization of the tab. The
 * server would refuse it to a user who is no longer a member there, and that user could not open any page.
 */
export const isOfUser = (url: string): boolean =>
  /^\/api\/(organizations|organizations\/invitations(\/.*)?|users\/.*)$/.test(new URL(url).pathname)
