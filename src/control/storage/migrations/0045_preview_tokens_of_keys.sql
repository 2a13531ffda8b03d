-- An API key gets a preview token of its own for a sandbox, and the token ends with the key. Only a hash of it is kept.
create table preview_tokens (
  sandbox_id text not null references sandboxes on delete cascade,
  -- sha256 of the API key.
  maker_hash text not null references api_keys (hash) on delete cascade,
  -- sha256 of the token, which the secret of the sandbox and that hash make.
  token_hash text not null check (token_hash ~ '^[0-9a-f]{64}$'),
  primary key (sandbox_id, maker_hash)
);
create index preview_tokens_of_maker on preview_tokens (maker_hash);
create index preview_tokens_by_hash on preview_tokens (token_hash);
