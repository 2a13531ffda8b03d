-- SSH tokens. Each opens one sandbox until the token expires. Only a hash of each token is stored.
create table ssh_access (
  id text primary key,
  -- SHA-256 hash of the token, in lowercase hexadecimal digits.
  token_hash text not null unique check (token_hash ~ '^[0-9a-f]{64}$'),
  sandbox_id text not null references sandboxes on delete cascade,
  -- The API key that made the token, which ends with that key. Null: a person made it without a key.
  maker_hash text references api_keys (hash) on delete cascade,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  expires_at timestamptz(3) not null
);
create index ssh_access_of_sandbox on ssh_access (sandbox_id, expires_at);
create index ssh_access_by_expiry on ssh_access (expires_at);
create index ssh_access_of_maker on ssh_access (maker_hash) where maker_hash is not null;
