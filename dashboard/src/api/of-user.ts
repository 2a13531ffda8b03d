/**
 * Whether a call is about the user. Such a call must not name the organization of this tab. Otherwise the server would refuse it
 * after the user was removed from that organization, and the user could not open any page.
 */
export const isOfUser = (url: string): boolean =>
  /^\/api\/(organizations|organizations\/invitations(\/.*)?|users\/.*)$/.test(new URL(url).pathname)
