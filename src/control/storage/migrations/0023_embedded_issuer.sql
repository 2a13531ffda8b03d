-- The embedded issuer: passwords, signing keys, and the records that it keeps between two requests.

-- Password hash: Argon2id, in the PHC string format.
create table user_passwords (
  user_id text primary key references users on delete cascade,
  hash text not null,
  changed_at timestamptz(3) not null
);

-- Private JWKs and the secret of the issuer's cookies, encrypted.
create table issuer_keys (
  id text primary key,
  kind text not null check (kind in ('signing', 'cookie')),
  secret text not null,
  created_at timestamptz(3) not null
);

-- Authorization codes, refresh tokens and sessions. Their names are credentials, so only hashes are stored; their
-- contents are encrypted.
create table issuer_records (
  model text not null,
  id_hash text not null,
  secret text not null,
  grant_hash text,
  uid_hash text,
  user_code_hash text,
  account_id text,
  consumed_at timestamptz(3),
  expires_at timestamptz(3) not null,
  primary key (model, id_hash)
);
create index issuer_records_grant on issuer_records (grant_hash);
create index issuer_records_uid on issuer_records (model, uid_hash);
create index issuer_records_user_code on issuer_records (model, user_code_hash);
create index issuer_records_account on issuer_records (account_id);
create index issuer_records_expires on issuer_records (expires_at);
