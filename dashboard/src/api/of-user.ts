/**
 * Whether a call is about the user and not about one organization. It must not name the organization of the tab: the
 * server would refuse it to a user who is no longer a member there, who could then open no page at all.
 */
export const isOfUser = (url: string): boolean =>
  /^\/api\/(organizations|organizations\/invitations(\/.*)?|users\/.*)$/.test(new URL(url).pathname)
