-- Hash of the API key that made this key, which ends with it at the latest. Null: a user made the key, or it is older
-- than this column.
alter table api_keys add column maker_hash text references api_keys (hash) on delete cascade;
create index api_keys_of_maker on api_keys (maker_hash) where maker_hash is not null;

alter table webhook_portal_tokens add column maker_hash text references api_keys (hash) on delete cascade;
create index webhook_portal_tokens_of_maker on webhook_portal_tokens (maker_hash) where maker_hash is not null;

alter table signed_previews add column maker_hash text references api_keys (hash) on delete cascade;
create index signed_previews_of_maker on signed_previews (maker_hash) where maker_hash is not null;
