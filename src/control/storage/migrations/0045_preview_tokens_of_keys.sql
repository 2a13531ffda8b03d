-- The preview token of an API key for a sandbox. It is deleted with the key. Only its hash is stored.
create table preview_tokens (
  sandbox_id text not null references sandboxes on delete cascade,
  -- SHA-256 of the API key.
  maker_hash text not null references api_keys (hash) on delete cascade,
  -- SHA-256 of the token, which is computed from the sandbox's secret and the hash of the key.
  token_hash text not null check (token_hash ~ '^[0-9a-f]{64}$'),
  primary key (sandbox_id, maker_hash)
);
create index preview_tokens_of_maker on preview_tokens (maker_hash);
create index preview_tokens_by_hash on preview_tokens (token_hash);
