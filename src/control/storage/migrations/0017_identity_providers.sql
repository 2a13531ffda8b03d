-- The identity providers of organizations, and the e-mail domains that each of them may sign in.
create table identity_providers (
  id text primary key,
  organization_id text not null references organizations on delete cascade,
  name text not null,
  issuer_url text not null,
  client_id text not null,
  -- The client secret, encrypted (storage/encryption.ts).
  client_secret text not null,
  scope text not null,
  allow_any_domain boolean not null,
  trust_email_verified boolean not null,
  enabled boolean not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);
create index identity_providers_organization on identity_providers (organization_id);

-- A domain belongs to one provider of the whole server.
create table identity_provider_domains (
  domain text primary key,
  identity_provider_id text not null references identity_providers on delete cascade
);
create index identity_provider_domains_provider on identity_provider_domains (identity_provider_id);

-- The roles of a new member who signs in through the provider.
create table identity_provider_roles (
  identity_provider_id text not null references identity_providers on delete cascade,
  role_id text not null references roles on delete cascade,
  primary key (identity_provider_id, role_id)
);
create index identity_provider_roles_role on identity_provider_roles (role_id);
