-- Registries from which an organization pulls with an account of its own.
create table docker_registries (
  id text primary key,
  organization_id text not null references organizations on delete cascade,
  name text not null,
  url text not null,
  -- By which images name the registry: in lower case, one name for Docker Hub.
  host text not null,
  username text not null,
  -- Encrypted (storage/encryption.ts).
  password text not null,
  -- The beginning of the names of the account's repositories. Empty: any.
  project text not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  unique (organization_id, host, project)
);
