-- The authority that signs the certificates of hosts. There is at most one.
create table host_authority (
  is_only boolean primary key default true check (is_only),
  certificate text not null,
  -- Encrypted (storage/encryption.ts).
  private_key text not null,
  created_at timestamptz(3) not null
);

-- The machines that have certificates of the authority.
create table hosts (
  runner_id text primary key references runners on delete cascade,
  -- SHA-256 of the public keys (SubjectPublicKeyInfo) of the host's runner and gate. No other keys count for the host.
  runner_key_hash text not null,
  gate_key_hash text not null,
  -- Hash of the token that was traded for the certificates, until they are used. Until then, the same keys may trade it
  -- again.
  token_hash text unique,
  updated_at timestamptz(3) not null
);
