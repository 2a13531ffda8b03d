-- Single sign-on: signing in to an organization through one of its identity providers.

-- Keys with which this server signs its own tokens. The private part is encrypted (storage/encryption.ts).
create table signing_keys (
  id text primary key,
  public_key jsonb not null,
  private_key text not null,
  created_at timestamptz(3) not null
);

-- A sign-in that was begun and has not returned from the provider. Both secrets are stored as hashes: the state, which
-- the provider passes on, and the browser's secret, which is in its cookie.
create table sso_attempts (
  state_hash text primary key,
  browser_hash text not null,
  identity_provider_id text not null references identity_providers on delete cascade,
  issuer_url text not null,
  nonce text not null,
  code_verifier text not null,
  expires_at timestamptz(3) not null
);
create index sso_attempts_provider on sso_attempts (identity_provider_id);
create index sso_attempts_expiry on sso_attempts (expires_at);

-- The user that an account at a provider belongs to. A link is bound to the issuer too. If the provider gets another
-- issuer, its old links sign nobody in.
create table sso_links (
  id text primary key default gen_random_uuid()::text,
  identity_provider_id text not null references identity_providers on delete cascade,
  issuer_url text not null,
  subject text not null,
  user_id text not null references users on delete cascade,
  provider_email text,
  state text not null check (state in ('pending', 'linked', 'rejected')),
  created_at timestamptz(3) not null,
  -- Until when a pending link may be confirmed.
  expires_at timestamptz(3) not null,
  unique (identity_provider_id, issuer_url, subject)
);
create index sso_links_user on sso_links (user_id);
