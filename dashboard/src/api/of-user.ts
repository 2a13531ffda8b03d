/**
 * Whether a call is about the user. It must not name the organization of this tab: after the user was removed from the
 * organization, the server would refuse the call, and the user could not open any page.
 */
export const isOfUser = (url: string): boolean =>
  /^\/api\/(organizations|organizations\/invitations(\/.*)?|users\/.*)$/.test(new URL(url).pathname)
