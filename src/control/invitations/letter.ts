// The text of an invitation mail. It has no secret: only a user who signs in with the invited address can accept.
import type { Invitation } from './invitation.ts'

export const letterOf = (
  { id, email, invitedBy, organizationName, expiresAt, role }: Invitation,
  publicUrl: string,
): { recipient: string; subject: string; body: string } => ({
  recipient: email,
  subject: `You are invited to ${organizationName}`,
  body: `${invitedBy} invites you to the organization "${organizationName}" on the Alcove server
${publicUrl} as ${role === 'owner' ? 'an owner' : 'a member'}.

Sign in there as ${email}, and accept:

  curl -X POST -H "Authorization: Bearer $TOKEN" \\
    ${publicUrl}/api/organizations/invitations/${id}/accept

This works until ${expiresAt.toUTCString()}. To refuse, say "decline" in the place of
"accept". If you do nothing, nothing happens.
`,
})
