/**
 * Whether a call is about the user and not about one organization. Such a call must not name the organization of this browser tab.
 * If it did, the server would refuse it after the user was removed from that organization, and the user could not open any page.
 */
export const isOfUser = (url: string): boolean =>
  /^\/api\/(organizations|organizations\/invitations(\/.*)?|users\/.*)$/.test(new URL(url).pathname)
