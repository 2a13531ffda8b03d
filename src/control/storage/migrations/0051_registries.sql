-- Registries from which an organization pulls images with its own account.
create table docker_registries (
  id text primary key,
  organization_id text not null references organizations on delete cascade,
  name text not null,
  url text not null,
  -- Name of the registry in image names: in lower case, and one name for Docker Hub.
  host text not null,
  username text not null,
  -- The password, encrypted (storage/encryption.ts).
  password text not null,
  -- Prefix of the repositories that the account is used for. Empty: all repositories.
  project text not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  unique (organization_id, host, project)
);
