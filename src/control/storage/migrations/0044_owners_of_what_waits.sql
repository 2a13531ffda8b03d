-- The network (IPv4 address or IPv6 /48) that began an attempt: where there are too many, the one with most gives way.
alter table sso_attempts add column source text;
-- The user who caused a mail, and who may have a share of those that wait. Null: it was queued before this was noted.
alter table mail_outbox add column user_id text;
create index mail_outbox_user on mail_outbox (user_id);
