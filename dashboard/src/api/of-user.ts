/**
 * Whether a call is about the user and not about one organization. Such a call must not name the organization that is selected in
 * this browser tab. Otherwise a user who was removed from that organization could not open any page, because the server would
 * refuse the call.
 */
export const isOfUser = (url: string): boolean =>
  /^\/api\/(organizations|organizations\/invitations(\/.*)?|users\/.*)$/.test(new URL(url).pathname)
