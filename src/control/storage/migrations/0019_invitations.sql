-- Invitations to organizations. The address is in lower case. A pending invitation after its end counts as expired.
create table invitations (
  id text primary key default gen_random_uuid()::text,
  organization_id text not null references organizations on delete cascade,
  email text not null,
  -- Address of the user who made the invitation.
  invited_by text not null,
  role text not null check (role in ('owner', 'member')),
  status text not null default 'pending' check (status in ('pending', 'accepted', 'declined', 'cancelled')),
  expires_at timestamptz(3) not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);
create unique index invitations_pending on invitations (organization_id, email) where status = 'pending';
create index invitations_addressed on invitations (email) where status = 'pending';
create index invitations_made on invitations (organization_id, created_at);
create index invitations_expiring on invitations (expires_at) where status = 'pending';
create index invitations_settled on invitations (updated_at) where status <> 'pending';

create table invitation_roles (
  invitation_id text not null references invitations on delete cascade,
  role_id text not null references roles on delete cascade,
  primary key (invitation_id, role_id)
);

-- For deleting a role: finds the invitations and members that have it.
create index invitation_roles_role on invitation_roles (role_id);
create index member_roles_role on member_roles (role_id);
