-- The network (IPv4 address or IPv6 /48) that began the attempt. If there are too many attempts, the network with the
-- most loses its oldest.
alter table sso_attempts add column source text;
-- The user who caused the mail; a user may queue only a share of all mails. Null: the mail is older than this column.
alter table mail_outbox add column user_id text;
create index mail_outbox_user on mail_outbox (user_id);
