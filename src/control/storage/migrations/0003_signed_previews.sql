-- URLs that open one port of one sandbox for a while, for everybody who has the URL. Only a hash of the token is
-- stored.

create table signed_previews (
  -- SHA-256 of the token, in lower-case hex.
  token_hash text primary key check (token_hash ~ '^[0-9a-f]{64}$'),
  sandbox_id text not null references sandboxes on delete cascade,
  port integer not null check (port between 1 and 65535),
  created_at timestamptz(3) not null,
  expires_at timestamptz(3) not null
);
create index signed_previews_of_sandbox on signed_previews (sandbox_id, expires_at);
create index signed_previews_by_expiry on signed_previews (expires_at);
