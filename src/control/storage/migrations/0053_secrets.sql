-- Secrets of an organization, which its sandboxes use without having their values.
create table secrets (
  id text primary key,
  organization_id text not null references organizations on delete cascade,
  name text not null,
  description text,
  -- What sandboxes have in place of the value.
  placeholder text not null unique,
  -- Encrypted (storage/encryption.ts).
  value text not null,
  -- The hosts to which requests may carry the value.
  hosts text[] not null,
  -- Grows with every change, so that a runner can tell the newer one.
  version integer not null default 1,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  unique (organization_id, name)
);

-- The authority of an organization, which its sandboxes trust. It signs the certificates of its secrets' hosts.
create table secret_authorities (
  organization_id text primary key references organizations on delete cascade,
  certificate text not null,
  -- Encrypted (storage/encryption.ts).
  private_key text not null,
  created_at timestamptz(3) not null
);

-- The mounted secrets with their placeholders, and the certificate of the organization's authority.
alter table sandboxes add column secrets jsonb not null default '[]', add column secret_authority text;
create index sandboxes_with_secrets on sandboxes (organization_id) where secrets <> '[]' and gone_at is null;

create or replace function shed_when_gone() returns trigger language plpgsql as $$
begin
  update sandboxes set env = '{}', unset_env = '{}', labels = '{}', entrypoint = null, build = null, volumes = '[]',
    secrets = '[]', secret_authority = null
  where id = new.id and (env <> '{}' or unset_env <> '{}' or labels <> '{}' or entrypoint is not null
    or build is not null or volumes <> '[]' or secrets <> '[]' or secret_authority is not null);
  return null;
end $$;
