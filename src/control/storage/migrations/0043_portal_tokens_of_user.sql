-- A user has a limited number of links and sessions of the webhook portal. Above the limit, the oldest one is deleted.
alter table webhook_portal_tokens add column created_at timestamptz not null default clock_timestamp();
create index webhook_portal_tokens_of_user on webhook_portal_tokens (organization_id, user_id, created_at);
